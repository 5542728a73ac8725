/**
 * CRC-32 as zlib and java.util.zip.CRC32 compute it: polynomial 0xEDB88320, reflected, conditioned before and after.
 *
 * Eight bytes a step ("slicing by 8"): table k answers what a byte does to the remainder when k more bytes follow it,
 * so that the eight look-ups of a step do not wait for each other.
 */

/** Eight tables of 256, one behind the other: TABLE[k << 8 | byte]. */
const TABLE: Int32Array = makeTables();

/**
 * Continues a CRC over bytes[start, end).
 *
 * @param seed what earlier bytes gave, 0 at the beginning
 * @returns an unsigned 32-bit number
 */
export function crc32(seed: number, bytes: Uint8Array, start: number, end: number): number {
  const t = TABLE;
  let c = ~seed;
  let i = start;
  const slicedEnd = end - 7;
  while (i < slicedEnd) {
    c ^= bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
    c =
      t[0x700 | (c & 0xff)]! ^
      t[0x600 | ((c >>> 8) & 0xff)]! ^
      t[0x500 | ((c >>> 16) & 0xff)]! ^
      t[0x400 | (c >>> 24)]! ^
      t[0x300 | bytes[i + 4]!]! ^
      t[0x200 | bytes[i + 5]!]! ^
      t[0x100 | bytes[i + 6]!]! ^
      t[bytes[i + 7]!]!;
    i += 8;
  }
  while (i < end) c = t[(c ^ bytes[i++]!) & 0xff]! ^ (c >>> 8);
  return ~c >>> 0;
}

/**
 * What changes in the CRC of a message when one of its bytes changes: 256 numbers, indexed by the exclusive or of the
 * old and the new byte, to be xored to the old CRC.
 *
 * CRC is linear over xor, so neither the other bytes nor their number matter, only how many bytes follow.
 */
export function makeChangeTable(bytesBehind: number): Int32Array {
  const changes = new Int32Array(256);
  for (let bit = 1; bit < 256; bit <<= 1) {
    let c = TABLE[bit]!;
    for (let k = 0; k < bytesBehind; k++) c = TABLE[c & 0xff]! ^ (c >>> 8);
    changes[bit] = c;
  }
  for (let byte = 3; byte < 256; byte++) {
    const lowest = byte & -byte;
    if (lowest !== byte) changes[byte] = changes[lowest]! ^ changes[byte ^ lowest]!;
  }
  return changes;
}

function makeTables(): Int32Array {
  const table = new Int32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let c = byte;
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
    table[byte] = c;
  }
  for (let i = 256; i < table.length; i++) {
    const c = table[i - 256]!;
    table[i] = table[c & 0xff]! ^ (c >>> 8);
  }
  return table;
}
