import { WordView } from '../base/word-view.ts';

/**
 * CRC-32 as zlib and java.util.zip.CRC32 compute it: polynomial 0xEDB88320, reflected, conditioned before and after.
 *
 * Eight bytes per step ("slicing by 8"): table k is the effect of a byte on the remainder when k more bytes follow it,
 * so that the lookups of a step are independent. The rest is processed in steps of four, then of one. Long input is
 * read as words, sixteen bytes per step. With sixteen tables a single short calculation is faster too, but they fill
 * half of a processor's L1 cache, which a server needs for other data: a multi of ten setData of 100 B then took the
 * core 3 % longer.
 */

/** Sixteen tables of 256, one behind the other: TABLE[k << 8 | byte]. */
const TABLE: Int32Array = makeTables();

/**
 * Continues a CRC over bytes[start, end).
 *
 * @param seed CRC of the earlier bytes, 0 at the beginning
 * @returns an unsigned 32-bit number
 */
export function crc32(seed: number, bytes: Uint8Array, start: number, end: number): number {
  if (end - start >= WORDS_BYTES_MIN) return crc32OfWords(seed, bytes, start, end);
  const t = TABLE;
  let c = ~seed;
  let i = start;
  for (const last = end - 8; i <= last; i += 8) {
    const word1 = t[0x300 | bytes[i + 4]!]! ^ t[0x200 | bytes[i + 5]!]! ^ t[0x100 | bytes[i + 6]!]! ^ t[bytes[i + 7]!]!;
    // The operand that depends on the previous step comes last.
    const word0 =
      t[0x700 | (bytes[i]! ^ (c & 0xff))]! ^
      t[0x600 | (bytes[i + 1]! ^ ((c >>> 8) & 0xff))]! ^
      t[0x500 | (bytes[i + 2]! ^ ((c >>> 16) & 0xff))]! ^
      t[0x400 | (bytes[i + 3]! ^ (c >>> 24))]!;
    c = word0 ^ word1;
  }
  for (const last = end - 4; i <= last; i += 4) {
    c =
      t[0x300 | (bytes[i]! ^ (c & 0xff))]! ^
      t[0x200 | (bytes[i + 1]! ^ ((c >>> 8) & 0xff))]! ^
      t[0x100 | (bytes[i + 2]! ^ ((c >>> 16) & 0xff))]! ^
      t[bytes[i + 3]! ^ (c >>> 24)]!;
  }
  for (; i < end; i++) c = t[(c ^ bytes[i]!) & 0xff]! ^ (c >>> 8);
  return ~c >>> 0;
}

function crc32OfWords(seed: number, bytes: Uint8Array, start: number, end: number): number {
  const t = TABLE;
  const words = VIEW.of(bytes);
  let c = ~seed;
  let i = start;
  for (const aligned = VIEW.alignedFrom(start); i < aligned; i++) c = t[(c ^ bytes[i]!) & 0xff]! ^ (c >>> 8);
  let at = VIEW.wordAt(i);
  const last = at + (((end - i) >> 4) << 2);
  i += (last - at) << 2;
  for (; at < last; at += 4) {
    const word0 = words[at]! ^ c;
    const word1 = words[at + 1]!;
    const word2 = words[at + 2]!;
    const word3 = words[at + 3]!;
    c = remainderOf(0x800, word1) ^ remainderOf(0x400, word2) ^ remainderOf(0, word3) ^ remainderOf(0xc00, word0);
  }
  for (; i < end; i++) c = t[(c ^ bytes[i]!) & 0xff]! ^ (c >>> 8);
  return ~c >>> 0;
}

/** Effect of four bytes, the first one lowest, on the remainder when `table >> 8` more bytes follow them. */
function remainderOf(table: number, word: number): number {
  const t = TABLE;
  return (
    t[(table + 0x300) | (word & 0xff)]! ^
    t[(table + 0x200) | ((word >>> 8) & 0xff)]! ^
    t[(table + 0x100) | ((word >>> 16) & 0xff)]! ^
    t[table | (word >>> 24)]!
  );
}

/**
 * Continues a CRC over two ints in jute's encoding, the highest byte first, without writing them to memory.
 *
 * @param crc as `crc32`, signed or not
 * @returns the same, signed: V8 would box half of the unsigned numbers
 */
export function crc32OfInts(crc: number, first: number, second: number): number {
  const t = TABLE;
  const c = ~crc;
  return ~(
    t[0x300 | (second >>> 24)]! ^
    t[0x200 | ((second >>> 16) & 0xff)]! ^
    t[0x100 | ((second >>> 8) & 0xff)]! ^
    t[second & 0xff]! ^
    // The operand that depends on the previous step comes last.
    (t[0x700 | ((first >>> 24) ^ (c & 0xff))]! ^
      t[0x600 | (((first >>> 16) ^ (c >>> 8)) & 0xff)]! ^
      t[0x500 | (((first >>> 8) ^ (c >>> 16)) & 0xff)]! ^
      t[0x400 | ((first & 0xff) ^ (c >>> 24))]!)
  );
}

/** The same over one int. */
export function crc32OfInt(crc: number, int: number): number {
  const t = TABLE;
  const c = ~crc;
  return ~(
    t[0x300 | ((int >>> 24) ^ (c & 0xff))]! ^
    t[0x200 | (((int >>> 16) ^ (c >>> 8)) & 0xff)]! ^
    t[0x100 | (((int >>> 8) ^ (c >>> 16)) & 0xff)]! ^
    t[(int & 0xff) ^ (c >>> 24)]!
  );
}

/** The CRC of an ASCII text, from its characters, as an unsigned 32-bit number; null for any other text. */
export function crc32OfAscii(text: string): number | null {
  const t = TABLE;
  const length = text.length;
  let c = ~0;
  let seen = 0;
  let i = 0;
  for (const last = length - 4; i <= last; i += 4) {
    const code0 = text.charCodeAt(i);
    const code1 = text.charCodeAt(i + 1);
    const code2 = text.charCodeAt(i + 2);
    const code3 = text.charCodeAt(i + 3);
    seen |= code0 | code1 | code2 | code3;
    c =
      t[0x300 | ((code0 ^ c) & 0xff)]! ^
      t[0x200 | ((code1 ^ (c >>> 8)) & 0xff)]! ^
      t[0x100 | ((code2 ^ (c >>> 16)) & 0xff)]! ^
      t[(code3 ^ (c >>> 24)) & 0xff]!;
  }
  for (; i < length; i++) {
    const code = text.charCodeAt(i);
    seen |= code;
    c = t[(c ^ code) & 0xff]! ^ (c >>> 8);
  }
  return seen > 0x7f ? null : ~c >>> 0;
}

/** Fewer bytes are processed without a view. */
const WORDS_BYTES_MIN = 256;
const VIEW = new WordView();

/** Continues a CRC over source[start, end), and copies these bytes to target[at …) in the same pass, eight per step. */
export function crc32OfCopy(
  seed: number,
  source: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  at: number,
): number {
  const t = TABLE;
  let c = ~seed;
  let i = start;
  let j = at;
  const slicedEnd = end - 7;
  while (i < slicedEnd) {
    const b0 = source[i]!;
    const b1 = source[i + 1]!;
    const b2 = source[i + 2]!;
    const b3 = source[i + 3]!;
    const b4 = source[i + 4]!;
    const b5 = source[i + 5]!;
    const b6 = source[i + 6]!;
    const b7 = source[i + 7]!;
    target[j] = b0;
    target[j + 1] = b1;
    target[j + 2] = b2;
    target[j + 3] = b3;
    target[j + 4] = b4;
    target[j + 5] = b5;
    target[j + 6] = b6;
    target[j + 7] = b7;
    c ^= b0 | (b1 << 8) | (b2 << 16) | (b3 << 24);
    c =
      t[0x700 | (c & 0xff)]! ^
      t[0x600 | ((c >>> 8) & 0xff)]! ^
      t[0x500 | ((c >>> 16) & 0xff)]! ^
      t[0x400 | (c >>> 24)]! ^
      t[0x300 | b4]! ^
      t[0x200 | b5]! ^
      t[0x100 | b6]! ^
      t[b7]!;
    i += 8;
    j += 8;
  }
  while (i < end) {
    const byte = source[i++]!;
    target[j++] = byte;
    c = t[(c ^ byte) & 0xff]! ^ (c >>> 8);
  }
  return ~c >>> 0;
}

/**
 * How the CRC of a message changes when one of its bytes changes: 256 numbers, indexed by the xor of the old and the
 * new byte, to be xored with the old CRC.
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
  const table = new Int32Array(16 * 256);
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
