import { crc32 as zlibCrc32 } from 'node:zlib';
import type { PersistedStat } from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crc32, DigestSum, digestAfterAversion, digestAfterCversion, digestAfterPzxid, znodeDigest } from './digest.ts';

const ZERO: PersistedStat = {
  czxid: 0,
  mzxid: 0,
  ctime: 0,
  mtime: 0,
  version: 0,
  cversion: 0,
  aversion: 0,
  ephemeralOwner: 0n,
  pzxid: 0,
};

describe('crc32', () => {
  it("is zlib's, for any bytes and in any number of steps", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 500, size: 'max' }), fc.nat(500), (bytes, cut) => {
        const at = Math.min(cut, bytes.length);
        expect(crc32(crc32(0, bytes, 0, at), bytes, at, bytes.length)).toBe(zlibCrc32(bytes));
      }),
    );
  });
});

describe('the digest of a znode', () => {
  it('gives, summed over a fresh tree, what Apache gives', () => {
    expect(znodeDigest('/', new Uint8Array(0), ZERO) + znodeDigest('/zookeeper', null, ZERO)).toBe(1371985504);
    expect(znodeDigest('/zookeeper/config', new Uint8Array(3), ZERO)).toBe(0);
  });

  it('follows a changed pzxid, cversion or aversion without looking at the rest', () => {
    const zxid = fc.nat(Number.MAX_SAFE_INTEGER);
    const int = fc.integer();
    fc.assert(
      fc.property(zxid, zxid, int, int, fc.string({ maxLength: 20 }), (oldZxid, newZxid, oldInt, newInt, name) => {
        const path = `/${name}`;
        const data = new Uint8Array(oldInt & 0xff).fill(oldInt);
        const digest = (change: Partial<PersistedStat>): number => znodeDigest(path, data, { ...ZERO, ...change });
        expect(digestAfterPzxid(digest({ pzxid: oldZxid }), oldZxid, newZxid)).toBe(digest({ pzxid: newZxid }));
        expect(digestAfterCversion(digest({ cversion: oldInt }), oldInt, newInt)).toBe(digest({ cversion: newInt }));
        expect(digestAfterAversion(digest({ aversion: oldInt }), oldInt, newInt)).toBe(digest({ aversion: newInt }));
      }),
    );
  });
});

describe('a digest sum', () => {
  it('counts modulo 2**64 and reads as a signed long', () => {
    const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 0xffffffff }), fc.boolean()), { maxLength: 50 });
    fc.assert(
      fc.property(steps, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (list, from) => {
        const sum = new DigestSum(Number(from >> 32n), Number(from & 0xffffffffn));
        const copy = sum.copy();
        let expected = from;
        for (const [digest, isAdded] of list) {
          if (isAdded) sum.add(digest);
          else sum.subtract(digest);
          expected += isAdded ? BigInt(digest) : -BigInt(digest);
        }
        expect(sum.toBigInt()).toBe(BigInt.asIntN(64, expected));
        expect(copy.toBigInt()).toBe(BigInt.asIntN(64, from));
      }),
    );
  });
});
