/**
 * The block of a znode in the arena:
 *
 *     int info │ path │ int length (−1 = null) │ data │ Stat, 68 bytes
 *                     └─────────── body of a getData reply ──────────┘
 *     info := pathBytes << 4 | isDigested << 3 | isAscii << 2 | ZnodeKind
 */
import { getInt, PERSISTED_STAT_BYTES, type PlainCreate, putInt, STAT_BYTES, StatOffset } from '@meerkat/protocol';
import { copyBytes } from './byte-arena.ts';
import { crc32OfCopy } from './crc32.ts';
import { isDigestedBytes } from './digest.ts';
import { PersistedOffset } from './persisted-stat.ts';
import { ZnodeKind } from './znode-kind.ts';

/** Bytes of the info and of the length in a block. */
export const INFO_BYTES = 4;
export const LENGTH_BYTES = 4;

export const KIND_MASK = 3;
export const IS_ASCII = 4;
export const IS_DIGESTED = 8;
export const PATH_SHIFT = 4;

/** Of a znode that has just been made. */
const ZERO_STAT = new Uint8Array(STAT_BYTES);

/** Consecutive: a path in ASCII, int length of the data (−1 = null), and the data. */
export interface ZnodeRecord {
  readonly bytes: Uint8Array;
  readonly pathStart: number;
  readonly pathEnd: number;
  readonly dataEnd: number;
}

/** The same, followed by the ACL number and the stat of a snapshot, up to `end`. */
export interface PersistedRecord extends ZnodeRecord {
  readonly end: number;
}

/** Size of a block; `dataLength` −1 for null counts as 0. */
export function blockBytes(pathBytes: number, dataLength: number): number {
  return INFO_BYTES + pathBytes + LENGTH_BYTES + Math.max(dataLength, 0) + STAT_BYTES;
}

/** Writes length, data and stat, and sets the data's length in the stat. */
export function fillReply(page: Uint8Array, at: number, data: Uint8Array | null, stat: Uint8Array): void {
  const length = data === null ? -1 : data.length;
  if (data !== null) copyBytes(data, 0, length, page, at + LENGTH_BYTES);
  putInt(page, at, length);
  const start = at + LENGTH_BYTES + Math.max(length, 0);
  page.set(stat, start);
  putInt(page, start + StatOffset.dataLength, Math.max(length, 0));
}

/** Writes the whole block of a path of this length and its data, with a stat of zeros except dataLength. */
export function fillBlock(
  page: Uint8Array,
  at: number,
  path: Uint8Array,
  pathBytes: number,
  flags: number,
  data: Uint8Array | null,
): void {
  putInt(page, at, (pathBytes << PATH_SHIFT) | flags);
  copyBytes(path, 0, pathBytes, page, at + INFO_BYTES);
  fillReply(page, at + INFO_BYTES + pathBytes, data, ZERO_STAT);
}

/** Writes the whole block of a record, with a stat of zeros except dataLength. */
export function fillRecord(page: Uint8Array, at: number, record: ZnodeRecord, kind: ZnodeKind): void {
  const { bytes, pathStart, pathEnd, dataEnd } = record;
  const flags = IS_ASCII | (isDigestedBytes(bytes, pathStart, pathEnd) ? IS_DIGESTED : 0) | kind;
  putInt(page, at, ((pathEnd - pathStart) << PATH_SHIFT) | flags);
  copyBytes(bytes, pathStart, dataEnd, page, at + INFO_BYTES);
  const stat = at + INFO_BYTES + dataEnd - pathStart;
  page.set(ZERO_STAT, stat);
  putInt(page, stat + StatOffset.dataLength, dataEnd - pathEnd - LENGTH_BYTES);
}

/**
 * Writes the whole block of a persistent znode from its record in a snapshot; the digest covers its path.
 *
 *     path │ int length │ data │ aclId, 8 │ StatPersisted, 60: czxid … aversion, 44 │ owner, 8 │ pzxid
 *     path │ int length │ data │ Stat, 68: czxid … aversion, 44 │ owner, dataLength, numChildren, 16 │ pzxid
 *
 * Both have the same length, beginning and end, so it is one copy, of which 44 bytes are then moved: a view for each
 * part would cost more.
 */
export function fillPersisted(page: Uint8Array, at: number, record: PersistedRecord): void {
  const { bytes, pathStart, pathEnd, dataEnd, end } = record;
  putInt(page, at, ((pathEnd - pathStart) << PATH_SHIFT) | IS_ASCII | IS_DIGESTED | ZnodeKind.persistent);
  copyBytes(bytes, pathStart, end, page, at + INFO_BYTES);
  const stat = at + INFO_BYTES + dataEnd - pathStart;
  const shift = STAT_BYTES - PERSISTED_STAT_BYTES;
  page.copyWithin(stat, stat + shift, stat + shift + PersistedOffset.ephemeralOwner);
  putInt(page, stat + StatOffset.ephemeralOwner, 0);
  putInt(page, stat + StatOffset.ephemeralOwner + 4, 0);
  putInt(page, stat + StatOffset.dataLength, dataEnd - pathEnd - LENGTH_BYTES);
  // numChildren now holds the second half of the owner: 0 for a persistent znode, as it has no children yet.
  putInt(page, stat + StatOffset.cversion, getInt(page, stat + StatOffset.cversion) << 1);
}

/**
 * Writes the whole block of a create, with the stat that it gives its znode. In the payload, path, length and data are
 * adjacent, as in a block.
 */
export function fillPlain(page: Uint8Array, at: number, create: PlainCreate): void {
  const { bytes, pathStart, dataEnd } = create;
  copyBytes(bytes, pathStart, dataEnd, page, at + INFO_BYTES);
  fillPlainStat(page, at, create);
}

/** The same. @returns CRC-32 of path and data, for the digest */
export function fillPlainWithCrc(page: Uint8Array, at: number, create: PlainCreate): number {
  const { bytes, pathStart, pathEnd, dataEnd } = create;
  const path = at + INFO_BYTES;
  const length = path + pathEnd - pathStart;
  putInt(page, length, create.dataLength);
  const pathCrc = crc32OfCopy(0, bytes, pathStart, pathEnd, page, path);
  const crc = crc32OfCopy(pathCrc, bytes, pathEnd + LENGTH_BYTES, dataEnd, page, length + LENGTH_BYTES);
  fillPlainStat(page, at, create);
  return crc;
}

function fillPlainStat(page: Uint8Array, at: number, create: PlainCreate): void {
  const { bytes, pathStart, pathEnd, dataEnd, zxidAt, timeAt } = create;
  const stat = at + INFO_BYTES + dataEnd - pathStart;
  putInt(page, at, ((pathEnd - pathStart) << PATH_SHIFT) | IS_ASCII | IS_DIGESTED | ZnodeKind.persistent);
  for (let i = 0; i < 8; i++) {
    const byte = bytes[zxidAt + i]!;
    page[stat + StatOffset.czxid + i] = byte;
    page[stat + StatOffset.mzxid + i] = byte;
    page[stat + StatOffset.pzxid + i] = byte;
  }
  for (let i = 0; i < 8; i++) {
    const byte = bytes[timeAt + i]!;
    page[stat + StatOffset.ctime + i] = byte;
    page[stat + StatOffset.mtime + i] = byte;
  }
  for (let i = StatOffset.version; i < StatOffset.dataLength; i++) page[stat + i] = 0;
  putInt(page, stat + StatOffset.dataLength, Math.max(create.dataLength, 0));
  putInt(page, stat + StatOffset.numChildren, 0);
}
