/**
 * A number for the bytes of a txn: two txns with equal zxids and different numbers are different.
 *
 * 53 bits out of two FNV-1a hashes of 32 bits that start and mix differently; checkers keep it instead of the bytes.
 */
export function bodyHash(bytes: Uint8Array): number {
  let high = 0x811c9dc5;
  let low = 0x9dc5811c;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    high = Math.imul(high ^ byte, FACTOR);
    low = Math.imul(low ^ (byte + i), FACTOR);
  }
  return ((high >>> 11) & 0x1fffff) * 0x100000000 + (low >>> 0);
}

const FACTOR = 0x01000193;
