/**
 * The digest of a tree: a 64-bit number that is equal for trees in which all znodes are equal (AdHash).
 *
 *     znode digest := CRC-32 of  path ("/" counts as no bytes), data unless null, and 60 bytes:
 *                       0 long czxid     24 long ctime      44 int cversion (persisted)
 *                       8 long mzxid     32 long mtime      48 int aversion
 *                      16 long pzxid     40 int  version    52 long ephemeralOwner (persisted)
 *     tree digest  := sum of the znode digests modulo 2**64
 *
 * Znodes below "/zookeeper/" count as 0: each server writes there on its own. Digest version 2 (DigestCalculator).
 */
import { getInt, type PersistedStat } from '@meerkat/protocol';
import { crc32, crc32OfAscii, crc32OfInt, crc32OfInts, makeChangeTable } from './crc32.ts';

export { crc32 } from './crc32.ts';

/** A znode's digest that has not been computed yet. */
export const UNKNOWN_DIGEST = -1;

/** Bytes of the fixed part after path and data. */
export const DIGESTED_STAT_BYTES = 60;

/** Offsets inside the fixed part. */
export const DigestedStatOffset = {
  czxid: 0,
  mzxid: 8,
  pzxid: 16,
  ctime: 24,
  mtime: 32,
  version: 40,
  cversion: 44,
  aversion: 48,
  ephemeralOwner: 52,
} as const;

/** Digest of one znode, an unsigned 32-bit number. `stat.cversion` is the persisted one. */
export function znodeDigest(path: string, data: Uint8Array | null, stat: PersistedStat): number {
  if (!isDigested(path)) return 0;
  const seed = pathCrc(path);
  let crc = data === null ? seed : crc32(seed, data, 0, data.length);
  const { czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner } = stat;
  crc = crc32OfInts(crc, highOf(czxid), czxid | 0);
  crc = crc32OfInts(crc, highOf(mzxid), mzxid | 0);
  crc = crc32OfInts(crc, highOf(pzxid), pzxid | 0);
  crc = crc32OfInts(crc, highOf(ctime), ctime | 0);
  crc = crc32OfInts(crc, highOf(mtime), mtime | 0);
  crc = crc32OfInts(crc, version, cversion | 0);
  crc = crc32OfInt(crc, aversion);
  if (ephemeralOwner === 0n) return crc32OfInts(crc, 0, 0) >>> 0;
  WHOLE[0] = ephemeralOwner;
  return crc32OfInts(crc, HALVES[1]!, HALVES[0]!) >>> 0;
}

/** The upper int of a long. */
function highOf(long: number): number {
  return Math.floor(long / 2 ** 32) | 0;
}

/** False for the znodes that count as 0. */
export function isDigested(path: string): boolean {
  return !path.startsWith(SYSTEM_PREFIX);
}

/** The same for a path in ASCII, bytes[start, end). */
export function isDigestedBytes(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < SYSTEM_PREFIX.length) return true;
  for (let i = 0; i < SYSTEM_PREFIX.length; i++) if (bytes[start + i] !== SYSTEM_PREFIX.charCodeAt(i)) return true;
  return false;
}

/** CRC-32 of a path's bytes; none for the root. */
export function pathCrc(path: string): number {
  if (path.length <= 1) return 0;
  const crc = crc32OfAscii(path);
  if (crc !== null) return crc;
  const bytes = ENCODER.encode(path);
  return crc32(0, bytes, 0, bytes.length);
}

/**
 * Digest of a persistent znode right after its create: three fields of its stat are the zxid, two the time, all others
 * zero. As CRC is linear, the contributions of the nonzero bytes suffice: the 60 bytes need not be written and read.
 *
 * @param crc that of path and data
 */
export function digestOfCreated(crc: number, zxid: number, time: number): number {
  return (
    (EMPTY_STAT_CRC ^
      changeOfInt(SEED, swapBytes(crc)) ^
      changeOfInt(CREATED_ZXID_HIGH, Math.floor(zxid / 2 ** 32)) ^
      changeOfInt(CREATED_ZXID_LOW, zxid >>> 0) ^
      changeOfInt(CREATED_TIME_HIGH, Math.floor(time / 2 ** 32)) ^
      changeOfInt(CREATED_TIME_LOW, time >>> 0)) >>>
    0
  );
}

/** A znode's digest after a change of its pzxid only: no byte of path or data is read. */
export function digestAfterPzxid(digest: number, oldPzxid: number, newPzxid: number): number {
  const high = Math.floor(oldPzxid / 2 ** 32) ^ Math.floor(newPzxid / 2 ** 32);
  const low = (oldPzxid >>> 0) ^ (newPzxid >>> 0);
  return (digest ^ changeOfInt(PZXID_HIGH, high) ^ changeOfInt(PZXID_LOW, low)) >>> 0;
}

/** A znode's digest after a change of its persisted cversion only. */
export function digestAfterCversion(digest: number, oldCversion: number, newCversion: number): number {
  return (digest ^ changeOfInt(CVERSION, oldCversion ^ newCversion)) >>> 0;
}

/** A znode's digest after a change of its aversion only. */
export function digestAfterAversion(digest: number, oldAversion: number, newAversion: number): number {
  return (digest ^ changeOfInt(AVERSION, oldAversion ^ newAversion)) >>> 0;
}

/** A sum modulo 2**64 of unsigned 32-bit numbers, in two halves to avoid bigints. */
export class DigestSum {
  /** Bits 32 … 63 and 0 … 31, both unsigned. */
  high: number;
  low: number;

  constructor(high: number = 0, low: number = 0) {
    this.high = high;
    this.low = low;
  }

  add(digest: number): void {
    const low = this.low + digest;
    this.low = low >>> 0;
    if (low > 0xffffffff) this.high = (this.high + 1) >>> 0;
  }

  subtract(digest: number): void {
    const low = this.low - digest;
    this.low = low >>> 0;
    if (low < 0) this.high = (this.high - 1) >>> 0;
  }

  copy(): DigestSum {
    return new DigestSum(this.high, this.low);
  }

  equals(other: DigestSum): boolean {
    return this.high === other.high && this.low === other.low;
  }

  /** True when `toBigInt` would give this value. */
  isValue(value: bigint): boolean {
    WHOLE[0] = value;
    return HALVES[0]! >>> 0 === this.low && HALVES[1]! >>> 0 === this.high;
  }

  /** True when the long at bytes[at] has this value. */
  standsAt(bytes: Uint8Array, at: number): boolean {
    return getInt(bytes, at) >>> 0 === this.high && getInt(bytes, at + 4) >>> 0 === this.low;
  }

  /** As Apache shows and stores it: a signed long. */
  toBigInt(): bigint {
    HALVES[0] = this.low;
    HALVES[1] = this.high;
    return WHOLE[0]!;
  }
}

const SYSTEM_PREFIX = '/zookeeper/';
const HALVES = new Int32Array(2);
const WHOLE = new BigInt64Array(HALVES.buffer);

type ChangeTables = readonly [Int32Array, Int32Array, Int32Array, Int32Array];

const ENCODER = new TextEncoder();

const PZXID_HIGH: ChangeTables = changeTablesAt(DigestedStatOffset.pzxid);
const PZXID_LOW: ChangeTables = changeTablesAt(DigestedStatOffset.pzxid + 4);
const CVERSION: ChangeTables = changeTablesAt(DigestedStatOffset.cversion);
const AVERSION: ChangeTables = changeTablesAt(DigestedStatOffset.aversion);

/** The CRC so far is stored lowest byte first; it is xored with the first four bytes that follow. */
const SEED: ChangeTables = changeTablesAt(0);
const EMPTY_STAT_CRC: number = crc32(0, new Uint8Array(DIGESTED_STAT_BYTES), 0, DIGESTED_STAT_BYTES);
const { czxid, mzxid, pzxid, ctime, mtime } = DigestedStatOffset;
const CREATED_ZXID_HIGH: ChangeTables = changeTablesAt(czxid, mzxid, pzxid);
const CREATED_ZXID_LOW: ChangeTables = changeTablesAt(czxid + 4, mzxid + 4, pzxid + 4);
const CREATED_TIME_HIGH: ChangeTables = changeTablesAt(ctime, mtime);
const CREATED_TIME_LOW: ChangeTables = changeTablesAt(ctime + 4, mtime + 4);

/** Tables for the four bytes of an int at each of `offsets` of the fixed part. */
function changeTablesAt(...offsets: readonly number[]): ChangeTables {
  const tableOf = (byte: number): Int32Array => {
    const sum = new Int32Array(256);
    for (const offset of offsets) {
      const table = makeChangeTable(DIGESTED_STAT_BYTES - 1 - offset - byte);
      for (let i = 0; i < 256; i++) sum[i]! ^= table[i]!;
    }
    return sum;
  };
  return [tableOf(0), tableOf(1), tableOf(2), tableOf(3)];
}

function swapBytes(value: number): number {
  return (value >>> 24) | ((value >>> 8) & 0xff00) | ((value << 8) & 0xff0000) | (value << 24);
}

function changeOfInt(tables: ChangeTables, change: number): number {
  // The usual case: the next zxid, one child more. The unchanged bytes contribute 0.
  if (change >>> 8 === 0) return tables[3][change]!;
  return (
    tables[0][change >>> 24]! ^
    tables[1][(change >>> 16) & 0xff]! ^
    tables[2][(change >>> 8) & 0xff]! ^
    tables[3][change & 0xff]!
  );
}
