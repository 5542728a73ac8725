/**
 * A number for the bytes of a txn: two txns with equal zxids and different numbers are different.
 *
 * 53 bits out of two hashes of 32 bits that start and mix differently, in words of four bytes; checkers keep it instead of
 * the bytes. A change of one word always changes it.
 */
export function bodyHash(bytes: Uint8Array): number {
  let high = 0x811c9dc5;
  let low = 0x9dc5811c;
  const { length } = bytes;
  let i = 0;
  for (; i + 4 <= length; i += 4) {
    const word = bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
    high = Math.imul(high ^ word, FACTOR);
    high = (high << 15) | (high >>> 17);
    low = Math.imul(low ^ (word + i), OTHER_FACTOR);
    low = (low << 13) | (low >>> 19);
  }
  for (; i < length; i++) {
    high = Math.imul(high ^ bytes[i]!, FACTOR);
    low = Math.imul(low ^ (bytes[i]! + i), OTHER_FACTOR);
  }
  return ((high >>> 11) & 0x1fffff) * 0x100000000 + (low >>> 0);
}

const FACTOR = 0x01000193;
const OTHER_FACTOR = 0x9e3779b1;
