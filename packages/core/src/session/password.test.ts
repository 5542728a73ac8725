import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isSamePassword, makeSessionPassword } from './password.ts';

describe('the password of a session', () => {
  // Printed by `new java.util.Random(id ^ 0xB3415C00L).nextBytes(password)` on OpenJDK 17.
  test.each([
    [0x1n, '054cc74a37327db215e702e20c73f005'],
    [0x100000000000000n, 'f22acd4a97e69d6d20a49bb638eadb38'],
    [0x1000abcdef10000n, '75107ecf5e51e709dbe44039d77bc427'],
    [0n, 'f22acd4a97e69d6d20a49bb638eadb38'],
    [0xb3415c00n, '60b420bb3851d9d47acb933dbe70399b'],
    [0xffffffffffffn, '20f62cb5648dc2d771471c8a2486a9ee'],
    [0x7fffffffffffffffn, '20f62cb5648dc2d771471c8a2486a9ee'],
    [-1n, '20f62cb5648dc2d771471c8a2486a9ee'],
    [-(2n ** 63n), 'f22acd4a97e69d6d20a49bb638eadb38'],
  ])('of session %s is the output of java.util.Random', (sessionId, hex) => {
    expect(Buffer.from(makeSessionPassword(sessionId)).toString('hex')).toBe(hex);
  });

  test('equals that of a straightforward implementation with 64-bit integers, for any id', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (sessionId) => {
        expect(makeSessionPassword(sessionId)).toEqual(javaRandomBytes(sessionId ^ 0xb3415c00n));
      }),
    );
  });
});

test('passwords are equal only if all bytes are equal', () => {
  const password = makeSessionPassword(1n);
  expect(isSamePassword(password, password.slice())).toBe(true);
  expect(isSamePassword(password, password.subarray(0, 15))).toBe(false);
  expect(isSamePassword(password, new Uint8Array(0))).toBe(false);
  for (let i = 0; i < 16; i++) {
    const other = password.slice();
    other[i]! ^= 1;
    expect(isSamePassword(password, other)).toBe(false);
  }
});

/** java.util.Random as specified in its documentation. */
function javaRandomBytes(seed: bigint): Uint8Array {
  const bytes = new Uint8Array(16);
  let state = BigInt.asUintN(48, seed ^ 0x5deece66dn);
  for (let i = 0; i < 4; i++) {
    state = BigInt.asUintN(48, state * 0x5deece66dn + 0xbn);
    new DataView(bytes.buffer).setUint32(i * 4, Number(state >> 16n), true);
  }
  return bytes;
}
