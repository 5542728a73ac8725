import type { JuteReader } from '../jute/reader.ts';
import type { JuteWriter } from '../jute/writer.ts';

/** Permission bits of an ACL entry (ZooDefs.Perms). */
export const Perm = { read: 1, write: 2, create: 4, delete: 8, admin: 16, all: 31 } as const;

/** One entry of an access control list: what `scheme:id` may do. The bits of `perms` are never validated. */
export interface Acl {
  readonly perms: number;
  /** null on the wire is kept, so that it can be refused with INVALIDACL. */
  readonly scheme: string | null;
  readonly id: string | null;
}

/** Grants everything to everyone. A shared value: equal lists read from the wire are this object. */
export const OPEN_ACL: readonly Acl[] = Object.freeze([
  Object.freeze({ perms: Perm.all, scheme: 'world', id: 'anyone' }),
]);

/** Grants read access to everyone. */
export const READ_ACL: readonly Acl[] = Object.freeze([
  Object.freeze({ perms: Perm.read, scheme: 'world', id: 'anyone' }),
]);

const NO_ACL: readonly Acl[] = Object.freeze([]);
const ACL_BYTES_MIN = 12;
/** int 1, int 31, "world", "anyone": the list that nearly every create carries. */
const OPEN_ACL_BYTES: Uint8Array = Uint8Array.of(
  0,
  0,
  0,
  1,
  0,
  0,
  0,
  31,
  0,
  0,
  0,
  5,
  0x77,
  0x6f,
  0x72,
  0x6c,
  0x64,
  0,
  0,
  0,
  6,
  0x61,
  0x6e,
  0x79,
  0x6f,
  0x6e,
  0x65,
);

/** Bytes of the encoded OPEN_ACL. */
export const OPEN_ACL_LENGTH: number = OPEN_ACL_BYTES.length;

export function readAclList(reader: JuteReader): readonly Acl[] {
  if (reader.remaining >= OPEN_ACL_LENGTH && isOpenAclAt(reader.bytes, reader.position)) {
    reader.position += OPEN_ACL_LENGTH;
    return OPEN_ACL;
  }
  const count = reader.vectorLength(ACL_BYTES_MIN);
  if (count === 0) return NO_ACL;
  const list: Acl[] = [];
  for (let i = 0; i < count && !reader.failed; i++) {
    const perms = reader.int();
    const scheme = reader.ustring();
    const id = reader.ustring();
    list.push({ perms, scheme, id });
  }
  return list;
}

/**
 * Maximum entries of an ACL in a request. Each entry costs a microsecond or two to decode, validate, compare with the
 * others, log and store, and one request would have room for 50,000. Logs and snapshots may hold longer lists.
 */
export const ACL_ENTRIES_MAX = 4096;

/** Replaces a list that is too long: every server refuses it (INVALIDACL). */
const REFUSED_ACL: readonly Acl[] = Object.freeze([Object.freeze({ perms: 0, scheme: null, id: null })]);

/** Reads the ACL of a request. One that is too long is skipped without decoding its texts. */
export function readRequestedAclList(reader: JuteReader): readonly Acl[] {
  const start = reader.position;
  const count = reader.vectorLength(ACL_BYTES_MIN);
  if (count <= ACL_ENTRIES_MAX) {
    reader.position = start;
    return readAclList(reader);
  }
  for (let i = 0; i < count && !reader.failed; i++) {
    reader.int();
    reader.skipField();
    reader.skipField();
  }
  return REFUSED_ACL;
}

export function writeAclList(writer: JuteWriter, list: readonly Acl[]): void {
  writer.int(list.length);
  for (const acl of list) {
    writer.int(acl.perms);
    writer.ustring(acl.scheme);
    writer.ustring(acl.id);
  }
}

/** True when the bytes at `at` are OPEN_ACL. */
export function isOpenAclAt(bytes: Uint8Array, at: number): boolean {
  for (let i = 0; i < OPEN_ACL_LENGTH; i++) if (bytes[at + i] !== OPEN_ACL_BYTES[i]) return false;
  return true;
}

/** Bytes of a Stat on the wire. */
export const STAT_BYTES = 68;

/**
 * The metadata of a znode that clients see, 68 bytes:
 * long czxid, mzxid, ctime, mtime; int version, cversion, aversion; long ephemeralOwner; int dataLength, numChildren;
 * long pzxid. Times are wall-clock milliseconds.
 */
export interface Stat {
  readonly czxid: number;
  readonly mzxid: number;
  readonly ctime: number;
  readonly mtime: number;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  readonly ephemeralOwner: bigint;
  readonly dataLength: number;
  readonly numChildren: number;
  readonly pzxid: number;
}

/** Offsets of the fields inside the 68 bytes. */
export const StatOffset = {
  czxid: 0,
  mzxid: 8,
  ctime: 16,
  mtime: 24,
  version: 32,
  cversion: 36,
  aversion: 40,
  ephemeralOwner: 44,
  dataLength: 52,
  numChildren: 56,
  pzxid: 60,
} as const;

export function readStat(reader: JuteReader): Stat {
  return {
    czxid: reader.long(),
    mzxid: reader.long(),
    ctime: reader.long(),
    mtime: reader.long(),
    version: reader.int(),
    cversion: reader.int(),
    aversion: reader.int(),
    ephemeralOwner: reader.longBig(),
    dataLength: reader.int(),
    numChildren: reader.int(),
    pzxid: reader.long(),
  };
}

export function writeStat(writer: JuteWriter, stat: Stat): void {
  writer.long(stat.czxid);
  writer.long(stat.mzxid);
  writer.long(stat.ctime);
  writer.long(stat.mtime);
  writer.int(stat.version);
  writer.int(stat.cversion);
  writer.int(stat.aversion);
  writer.longBig(stat.ephemeralOwner);
  writer.int(stat.dataLength);
  writer.int(stat.numChildren);
  writer.long(stat.pzxid);
}

/** Bytes of a StatPersisted in a snapshot. */
export const PERSISTED_STAT_BYTES = 60;

/**
 * What a snapshot keeps of a Stat, 60 bytes: long czxid, mzxid, ctime, mtime; int version, cversion, aversion;
 * long ephemeralOwner, pzxid.
 *
 * Here `cversion` is the number of children ever created, from which sequence numbers are taken, and `ephemeralOwner`
 * also marks containers and TTL znodes (EphemeralType); clients see neither of the two in this form.
 */
export interface PersistedStat {
  readonly czxid: number;
  readonly mzxid: number;
  readonly ctime: number;
  readonly mtime: number;
  readonly version: number;
  readonly cversion: number;
  readonly aversion: number;
  readonly ephemeralOwner: bigint;
  readonly pzxid: number;
}

export function readPersistedStat(reader: JuteReader): PersistedStat {
  return {
    czxid: reader.long(),
    mzxid: reader.long(),
    ctime: reader.long(),
    mtime: reader.long(),
    version: reader.int(),
    cversion: reader.int(),
    aversion: reader.int(),
    ephemeralOwner: reader.longBig(),
    pzxid: reader.long(),
  };
}

export function writePersistedStat(writer: JuteWriter, stat: PersistedStat): void {
  writer.long(stat.czxid);
  writer.long(stat.mzxid);
  writer.long(stat.ctime);
  writer.long(stat.mtime);
  writer.int(stat.version);
  writer.int(stat.cversion);
  writer.int(stat.aversion);
  writer.longBig(stat.ephemeralOwner);
  writer.long(stat.pzxid);
}
