import type { JuteReader } from '../jute/reader.ts';
import type { JuteWriter } from '../jute/writer.ts';
import { OpCode } from '../op-code.ts';
import { type Acl, readRequestedAclList, writeAclList } from './data.ts';

/** Kinds of znode that a create asks for (CreateMode): an enumeration, not a set of bits. */
export const CreateMode = {
  persistent: 0,
  ephemeral: 1,
  persistentSequential: 2,
  ephemeralSequential: 3,
  container: 4,
  persistentWithTtl: 5,
  persistentSequentialWithTtl: 6,
} as const;
export type CreateMode = (typeof CreateMode)[keyof typeof CreateMode];

export type CreateOp =
  | typeof OpCode.create
  | typeof OpCode.create2
  | typeof OpCode.createContainer
  | typeof OpCode.createTTL;

export interface CreateRequest {
  readonly op: CreateOp;
  readonly path: string;
  readonly data: Uint8Array | null;
  /** At most `ACL_ENTRIES_MAX` entries; a longer list is replaced by one that every server refuses. */
  readonly acl: readonly Acl[];
  /** A CreateMode, unless the client sent another number. */
  readonly flags: number;
  /** Milliseconds; −1 for every op but createTTL. An inexact number is replaced by the nearest exact one. */
  readonly ttl: number;
}

export interface DeleteRequest {
  readonly op: typeof OpCode.delete;
  readonly path: string;
  /** −1 matches any version. */
  readonly version: number;
}

export interface SetDataRequest {
  readonly op: typeof OpCode.setData;
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly version: number;
}

export interface SetAclRequest {
  readonly op: typeof OpCode.setACL;
  readonly path: string;
  readonly acl: readonly Acl[];
  /** Compared with the znode's aversion; −1 matches any. */
  readonly version: number;
}

/** Only inside a multi. */
export interface CheckRequest {
  readonly op: typeof OpCode.check;
  readonly path: string;
  readonly version: number;
}

/** Requests that change one znode. */
export type WriteRequest = CreateRequest | DeleteRequest | SetDataRequest | SetAclRequest;

export function readCreate(op: CreateOp, reader: JuteReader): CreateRequest | null {
  const path = reader.ustring();
  const data = reader.buffer();
  const acl = readRequestedAclList(reader);
  const flags = reader.int();
  const ttl = op === OpCode.createTTL ? reader.longClamped() : -1;
  return path === null ? null : { op, path, data, acl, flags, ttl };
}

export function readDelete(reader: JuteReader): DeleteRequest | null {
  const path = reader.ustring();
  const version = reader.int();
  return path === null ? null : { op: OpCode.delete, path, version };
}

export function readSetData(reader: JuteReader): SetDataRequest | null {
  const path = reader.ustring();
  const data = reader.buffer();
  const version = reader.int();
  return path === null ? null : { op: OpCode.setData, path, data, version };
}

export function readSetAcl(reader: JuteReader): SetAclRequest | null {
  const path = reader.ustring();
  const acl = readRequestedAclList(reader);
  const version = reader.int();
  return path === null ? null : { op: OpCode.setACL, path, acl, version };
}

export function readCheck(reader: JuteReader): CheckRequest | null {
  const path = reader.ustring();
  const version = reader.int();
  return path === null ? null : { op: OpCode.check, path, version };
}

/** Writes the record of a single write, alone or as a part of a multi. */
export function writeWriteRequest(writer: JuteWriter, request: WriteRequest | CheckRequest): void {
  writer.ustring(request.path);
  switch (request.op) {
    case OpCode.delete:
    case OpCode.check:
      writer.int(request.version);
      return;
    case OpCode.setData:
      writer.buffer(request.data);
      writer.int(request.version);
      return;
    case OpCode.setACL:
      writeAclList(writer, request.acl);
      writer.int(request.version);
      return;
    default:
      writer.buffer(request.data);
      writeAclList(writer, request.acl);
      writer.int(request.flags);
      if (request.op === OpCode.createTTL) writer.long(request.ttl);
  }
}
