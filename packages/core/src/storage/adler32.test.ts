import { describe, expect, it } from 'vitest';
import { ADLER_START, adler32 } from './adler32.ts';

/** The definition, with one modulo per byte. */
function definition(bytes: Uint8Array): number {
  let a = 1;
  let b = 0;
  for (const byte of bytes) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return b * 65536 + a;
}

describe('adler32', () => {
  it('equals the definition for a known text', () => {
    const bytes = new TextEncoder().encode('Wikipedia');
    expect(adler32(ADLER_START, bytes, 0, bytes.length)).toBe(0x11e60398);
  });

  it('agrees with the definition on the largest bytes, around the length of a run', () => {
    for (const length of [0, 1, 3, 4, 87, 88, 89, 5553, 70_000, 1_000_000]) {
      const bytes = new Uint8Array(length).fill(255);
      expect(adler32(ADLER_START, bytes, 0, length), `length ${length}`).toBe(definition(bytes));
    }
  });

  it('agrees with the definition at any alignment, and for any small length', () => {
    const memory = new Uint8Array(400).fill(255);
    for (let start = 0; start < 5; start++) {
      const bytes = memory.subarray(start);
      for (let length = 0; length <= 190; length++) {
        const expected = definition(memory.subarray(0, length));
        expect(adler32(ADLER_START, bytes, 3, 3 + length), `from ${start}, ${length} bytes`).toBe(expected);
      }
    }
  });

  it('gives the same result however the bytes are cut into parts', () => {
    const bytes = Uint8Array.from({ length: 20_000 }, (_, i) => (i * i * 31 + 7) & 255);
    const whole = definition(bytes);
    for (const cut of [1, 13, 4096, 5552, 9999, 19_999]) {
      const first = adler32(ADLER_START, bytes, 0, cut);
      expect(adler32(first, bytes, cut, bytes.length), `cut at ${cut}`).toBe(whole);
    }
  });
});
