import { getInt, getLong } from '../jute/writer.ts';
import { OpCode } from '../op-code.ts';
import { isZxid, ZXID_ZERO, type Zxid } from '../zxid.ts';
import { isOpenAclAt, OPEN_ACL_LENGTH } from './data.ts';

/**
 * Finds the fields of a create of a persistent znode with the open ACL in its payload, without allocating.
 *
 *     long clientId │ int cxid │ long zxid │ long time │ int type 1 or 15
 *     int length │ path │ int length (−1 = null) │ data │ OPEN_ACL │ boolean ephemeral 0 │ int parentCversion │ TxnDigest?
 *
 * Long logs consist mostly of such txns. Decoding them into strings, lists and objects takes as long as applying them.
 * So one object is reused for all of them; its numbers are offsets into `bytes`.
 */
export class PlainCreate {
  bytes: Uint8Array = new Uint8Array(0);
  zxid: Zxid = ZXID_ZERO;
  /** Wall-clock milliseconds. */
  time = 0;
  /** The path, in ASCII and at least two bytes long. */
  pathStart = 0;
  pathEnd = 0;
  /** Offset of zxid and time, eight bytes each. */
  zxidAt = 0;
  timeAt = 0;
  /** −1 for null. The data begin four bytes behind the path. */
  dataLength = 0;
  dataEnd = 0;
  parentCversion = 0;
  /** Offset of the TxnDigest, −1 when there is none. */
  digestAt = -1;

  /** @returns false when bytes[start, end) is not a payload of this kind */
  read(bytes: Uint8Array, start: number, end: number): boolean {
    const pathStart = createPathStart(start);
    if (pathStart > end) return false;
    const type = getInt(bytes, start + TYPE_OFFSET);
    if (type !== OpCode.create && type !== OpCode.create2) return false;
    if (!isZxid(getLong(bytes, start + ZXID_OFFSET))) return false;
    if (!Number.isSafeInteger(getLong(bytes, start + TIME_OFFSET))) return false;

    const pathEnd = pathStart + getInt(bytes, pathStart - 4);
    if (pathEnd < pathStart + 2 || pathEnd + 4 > end || !isAscii(bytes, pathStart, pathEnd)) return false;
    const dataLength = getInt(bytes, pathEnd);
    const dataEnd = pathEnd + 4 + Math.max(dataLength, 0);
    const ephemeralAt = dataEnd + OPEN_ACL_LENGTH;
    if (dataLength < -1 || ephemeralAt + 5 > end || !isOpenAclAt(bytes, dataEnd) || bytes[ephemeralAt] !== 0)
      return false;

    this.readKnown(bytes, start, end);
    return true;
  }

  /** The same for a payload that `read` has accepted before: nothing is checked again. */
  readKnown(bytes: Uint8Array, start: number, end: number): void {
    const pathStart = createPathStart(start);
    const pathEnd = pathStart + getInt(bytes, pathStart - 4);
    const dataLength = getInt(bytes, pathEnd);
    const dataEnd = pathEnd + 4 + Math.max(dataLength, 0);
    const cversionAt = dataEnd + OPEN_ACL_LENGTH + 1;
    const recordEnd = cversionAt + 4;
    const zxid = getLong(bytes, start + ZXID_OFFSET);
    this.bytes = bytes;
    // `read` has checked it; the type is asked for again.
    if (isZxid(zxid)) this.zxid = zxid;
    this.time = getLong(bytes, start + TIME_OFFSET);
    this.zxidAt = start + ZXID_OFFSET;
    this.timeAt = start + TIME_OFFSET;
    this.pathStart = pathStart;
    this.pathEnd = pathEnd;
    this.dataLength = dataLength;
    this.dataEnd = dataEnd;
    this.parentCversion = getInt(bytes, cversionAt);
    this.digestAt = end - recordEnd >= TXN_DIGEST_BYTES ? recordEnd : -1;
  }
}

/** Where the path begins in the payload of a create that begins at `start`. */
export function createPathStart(start: number): number {
  return start + HEADER_BYTES + 4;
}

/** Where the path ends in a payload that begins at `start` and may be that of a plain create; 0 of any other. */
export function createPathEnd(bytes: Uint8Array, start: number): number {
  const pathStart = createPathStart(start);
  if (pathStart > bytes.length) return 0;
  const type = getInt(bytes, start + TYPE_OFFSET);
  if (type !== OpCode.create && type !== OpCode.create2) return 0;
  const pathEnd = pathStart + getInt(bytes, pathStart - 4);
  return pathEnd < pathStart + 2 || pathEnd > bytes.length ? 0 : pathEnd;
}

const HEADER_BYTES = 32;
const ZXID_OFFSET = 12;
const TIME_OFFSET = 20;
const TYPE_OFFSET = 28;
const TXN_DIGEST_BYTES = 12;

function isAscii(bytes: Uint8Array, start: number, end: number): boolean {
  let seen = 0;
  for (let i = start; i < end; i++) seen |= bytes[i]!;
  return seen < 0x80;
}
