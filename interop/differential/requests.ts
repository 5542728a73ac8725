import { Op } from '../harness/raw-client.ts';
import { type AclEntry, record } from '../harness/record-builder.ts';
import { aclText } from './step.ts';

/** A request before it is assigned to a slot: the op, the bytes of its record, and a description. */
export interface Request {
  readonly type: number;
  readonly body: Buffer;
  readonly text: string;
}

export interface NewZnode {
  readonly path: string | null;
  readonly data: Buffer | null;
  readonly acl: readonly AclEntry[] | null;
  readonly flags: number;
  /** Only createTTL has one. */
  readonly ttl?: bigint;
}

/** Any of the four create ops. */
export function create(type: number, znode: NewZnode): Request {
  const body = record().ustring(znode.path).buffer(znode.data).acls(znode.acl).int(znode.flags);
  if (type === Op.createTTL) body.long(znode.ttl ?? 0n);
  const ttl = type === Op.createTTL ? ` ttl ${znode.ttl}` : '';
  const data = znode.data === null ? 'no data' : `${znode.data.length}B`;
  const text = `${name(type)} ${quoted(znode.path)} ${data} flags ${znode.flags}${ttl} acl ${aclText(znode.acl)}`;
  return { type, body: body.build(), text };
}

/** delete, check: a path and a version. */
export function pathAndVersion(type: number, path: string | null, version: number): Request {
  return {
    type,
    body: record().ustring(path).int(version).build(),
    text: `${name(type)} ${quoted(path)} version ${version}`,
  };
}

export function setData(path: string | null, data: Buffer | null, version: number): Request {
  const length = data === null ? 'no data' : `${data.length}B`;
  return {
    type: Op.setData,
    body: record().ustring(path).buffer(data).int(version).build(),
    text: `setData ${quoted(path)} ${length} version ${version}`,
  };
}

export function setAcl(path: string | null, acl: readonly AclEntry[] | null, version: number): Request {
  return {
    type: Op.setACL,
    body: record().ustring(path).acls(acl).int(version).build(),
    text: `setACL ${quoted(path)} version ${version} acl ${aclText(acl)}`,
  };
}

/** exists, getData, getChildren, getChildren2: a path and a watch flag. */
export function watchedRead(type: number, path: string | null, isWatched: boolean): Request {
  return {
    type,
    body: record().ustring(path).bool(isWatched).build(),
    text: `${name(type)} ${quoted(path)}${isWatched ? ' watch' : ''}`,
  };
}

/** getACL, sync, getEphemerals, getAllChildrenNumber: a path. */
export function pathOnly(type: number, path: string | null): Request {
  return { type, body: record().ustring(path).build(), text: `${name(type)} ${quoted(path)}` };
}

/** addWatch, checkWatches, removeWatches: a path and a number. */
export function pathAndNumber(type: number, path: string | null, number: number): Request {
  return {
    type,
    body: record().ustring(path).int(number).build(),
    text: `${name(type)} ${quoted(path)} ${number}`,
  };
}

export function auth(scheme: string | null, credentials: string | null): Request {
  const body = record().int(0).ustring(scheme).buffer(credentials).build();
  return { type: Op.auth, body, text: `auth ${scheme} ${credentials}` };
}

/** An op with an empty record, or with the given bytes. */
export function bare(type: number, body: Buffer = Buffer.alloc(0)): Request {
  return { type, body, text: body.length === 0 ? name(type) : `${name(type)} with ${body.length} bytes` };
}

export function multi(type: number, subs: readonly Request[]): Request {
  const body = record();
  for (const sub of subs) body.int(sub.type).bool(false).int(-1).raw(sub.body);
  body.int(-1).bool(true).int(-1);
  return { type, body: body.build(), text: `${name(type)} [${subs.map((sub) => sub.text).join('; ')}]` };
}

const NAMES = new Map<number, string>(Object.entries(Op).map(([key, value]) => [value, key]));

export function name(type: number): string {
  return NAMES.get(type) ?? `op ${type}`;
}

function quoted(path: string | null): string {
  return path === null ? 'null' : JSON.stringify(path);
}
