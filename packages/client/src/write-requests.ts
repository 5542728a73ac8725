import {
  type Acl,
  type CheckRequest,
  CreateMode,
  type CreateRequest,
  type DeleteRequest,
  EMPTY_BYTES,
  OPEN_ACL,
  OpCode,
  type SetDataRequest,
} from '@meerkat/protocol';
import { type Data, toBytes } from './data.ts';
import { BadArgumentsError } from './errors.ts';
import type { CreateOptions } from './operations.ts';
import type { About, CallOptions, Requester } from './requester.ts';

/*
 * The records of writes, both for separate requests and for transactions. Paths are already absolute. All of these
 * throw a BadArgumentsError for arguments that are recognizably invalid.
 */

/** The properties of a created znode. */
export type CreateShape = Omit<CreateOptions, keyof CallOptions>;

/** A requester that also supports paths to which the server appends a number: `/queue/` is valid then. */
export interface CreateRequester extends Requester {
  absoluteSequential(path: string, operation: string): string;
}

export function absoluteOfCreate(
  requester: CreateRequester,
  path: string,
  shape: CreateShape,
  operation: string,
): string {
  return shape.sequential === true
    ? requester.absoluteSequential(path, operation)
    : requester.absolute(path, operation);
}

/** Op code and flags belong together: outside of a multi the server uses the op code, inside the flags. */
export function makeCreate(path: string, data: Data | undefined, shape: CreateShape, about: About): CreateRequest {
  const { mode = 'persistent', sequential = false, ttlMs, acl = OPEN_ACL } = shape;
  const record = {
    path,
    data: data === undefined ? EMPTY_BYTES : checkedBytes(data, about),
    acl: checkedAcl(acl, about),
  };
  if (ttlMs !== undefined) {
    if (mode !== 'persistent') throw bad(about, `a znode with ttlMs is persistent, not ${mode}`);
    if (!Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > TTL_MS_MAX) {
      throw bad(about, `ttlMs is a whole number from 1 to ${TTL_MS_MAX}, not ${ttlMs}`);
    }
    const flags = sequential ? CreateMode.persistentSequentialWithTtl : CreateMode.persistentWithTtl;
    return { op: OpCode.createTTL, ...record, flags, ttl: ttlMs };
  }
  switch (mode) {
    case 'persistent': {
      const flags = sequential ? CreateMode.persistentSequential : CreateMode.persistent;
      return { op: OpCode.create2, ...record, flags, ttl: -1 };
    }
    case 'ephemeral': {
      const flags = sequential ? CreateMode.ephemeralSequential : CreateMode.ephemeral;
      return { op: OpCode.create2, ...record, flags, ttl: -1 };
    }
    case 'container':
      if (sequential) throw bad(about, 'a container cannot be sequential');
      return { op: OpCode.createContainer, ...record, flags: CreateMode.container, ttl: -1 };
    default:
      throw bad(about, `mode is 'persistent', 'ephemeral' or 'container', not ${String(mode)}`);
  }
}

export function makeSetData(path: string, data: Data, version: number | undefined, about: About): SetDataRequest {
  return { op: OpCode.setData, path, data: checkedBytes(data, about), version: checkedVersion(version, about) };
}

export function makeDelete(path: string, version: number | undefined, about: About): DeleteRequest {
  return { op: OpCode.delete, path, version: checkedVersion(version, about) };
}

export function makeCheck(path: string, version: number | undefined, about: About): CheckRequest {
  return { op: OpCode.check, path, version: checkedVersion(version, about) };
}

/** −1 stands for any version. A version that is not a number would be encoded as 0, an unintended condition. */
export function checkedVersion(version: number | undefined, about: About): number {
  if (version === undefined) return ANY_VERSION;
  if (version === (version | 0)) return version;
  throw bad(about, `a version is a whole number of 32 bits, not ${version}`);
}

export const ANY_VERSION = -1;

/** Permissions that are not a number would be encoded as none at all. */
export function checkedAcl(acl: readonly Acl[], about: About): readonly Acl[] {
  if (acl === OPEN_ACL) return acl;
  if (!Array.isArray(acl)) throw bad(about, `an ACL is a list of entries, not ${typeof acl}`);
  for (const entry of acl as readonly (Acl | null | undefined)[]) {
    const { perms, scheme, id } = entry ?? {};
    if (perms !== undefined && perms === (perms | 0) && typeof scheme === 'string' && typeof id === 'string') continue;
    throw bad(about, `an entry of an ACL is { perms: bits of Perm, scheme: text, id: text }, not ${showEntry(entry)}`);
  }
  return acl;
}

function showEntry(entry: unknown): string {
  return (
    JSON.stringify(entry, (_key, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value)) ?? typeof entry
  );
}

/** Five bytes of milliseconds, 34 years (EphemeralType.TTL). */
const TTL_MS_MAX = 0xff_ffff_ffff;

function checkedBytes(data: Data, about: About): Uint8Array | null {
  if (typeof data === 'string' || data === null || data instanceof Uint8Array) return toBytes(data);
  throw bad(about, `data is a string, a Uint8Array or null, not ${typeof data}; a codec turns other values into bytes`);
}

function bad(about: About, detail: string): BadArgumentsError {
  return new BadArgumentsError({ ...about, detail });
}
