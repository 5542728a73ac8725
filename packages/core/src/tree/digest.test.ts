import { crc32 as zlibCrc32 } from 'node:zlib';
import type { PersistedStat } from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crc32OfCopy } from './crc32.ts';
import {
  crc32,
  DigestSum,
  digestAfterAversion,
  digestAfterCversion,
  digestAfterPzxid,
  digestOfCreated,
  pathCrc,
  znodeDigest,
} from './digest.ts';

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
  it("equals zlib's, for any bytes and in any number of steps", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 1500, size: 'max' }), fc.nat(1500), fc.nat(5), (memory, cut, skipped) => {
        const bytes = memory.subarray(skipped);
        const at = Math.min(cut, bytes.length);
        expect(crc32(crc32(0, bytes, 0, at), bytes, at, bytes.length)).toBe(zlibCrc32(bytes));
      }),
    );
  });

  it('of a path is that of its UTF-8, except for the root', () => {
    const text = fc.oneof(
      fc.string({ minLength: 2, maxLength: 1500, size: 'max' }),
      fc.string({ minLength: 2, unit: 'binary' }),
    );
    fc.assert(
      fc.property(text, (path) => {
        expect(pathCrc(path)).toBe(zlibCrc32(Buffer.from(path)));
      }),
    );
    expect(pathCrc('/')).toBe(0);
  });

  it('is the same for bytes that are copied in the same pass', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 500, size: 'max' }), fc.nat(0xffffffff), fc.nat(9), (bytes, seed, at) => {
        const copy = new Uint8Array(bytes.length + 20);
        expect(crc32OfCopy(seed, bytes, 0, bytes.length, copy, at)).toBe(zlibCrc32(bytes, seed));
        expect(copy.subarray(at, at + bytes.length)).toEqual(bytes);
        expect(copy.subarray(at + bytes.length).every((byte) => byte === 0)).toBe(true);
      }),
    );
  });
});

describe('the digest of a znode', () => {
  it('summed over a fresh tree equals that of Apache', () => {
    expect(znodeDigest('/', new Uint8Array(0), ZERO) + znodeDigest('/zookeeper', null, ZERO)).toBe(1371985504);
    expect(znodeDigest('/zookeeper/config', new Uint8Array(3), ZERO)).toBe(0);
  });

  it('is the CRC of path, data and the 60 bytes of the stat', () => {
    const zxid = fc.maxSafeNat();
    const time = fc.maxSafeInteger();
    const int = fc.integer();
    const owner = fc.oneof(fc.constant(0n), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }));
    fc.assert(
      fc.property(zxid, zxid, zxid, time, time, int, int, int, owner, (...fields) => {
        const [czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner] = fields;
        const bytes = Buffer.alloc(60);
        for (const [i, long] of [czxid, mzxid, pzxid, ctime, mtime].entries())
          bytes.writeBigInt64BE(BigInt(long), 8 * i);
        for (const [i, value] of [version, cversion, aversion].entries()) bytes.writeInt32BE(value, 40 + 4 * i);
        bytes.writeBigInt64BE(ephemeralOwner, 52);
        const stat = { czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, ephemeralOwner };
        expect(znodeDigest('/a', Uint8Array.of(1, 2), stat)).toBe(
          zlibCrc32(Buffer.concat([Buffer.from('/a\x01\x02'), bytes])),
        );
      }),
    );
  });

  it('is updated for a changed pzxid, cversion or aversion without reading the rest', () => {
    const zxid = fc.nat(Number.MAX_SAFE_INTEGER);
    const int = fc.integer();
    fc.assert(
      fc.property(
        zxid,
        zxid,
        int,
        int,
        fc.string({ maxLength: 20, size: 'max' }),
        (oldZxid, newZxid, oldInt, newInt, name) => {
          const path = `/${name}`;
          const data = new Uint8Array(oldInt & 0xff).fill(oldInt);
          const digest = (change: Partial<PersistedStat>): number => znodeDigest(path, data, { ...ZERO, ...change });
          expect(digestAfterPzxid(digest({ pzxid: oldZxid }), oldZxid, newZxid)).toBe(digest({ pzxid: newZxid }));
          expect(digestAfterCversion(digest({ cversion: oldInt }), oldInt, newInt)).toBe(digest({ cversion: newInt }));
          expect(digestAfterAversion(digest({ aversion: oldInt }), oldInt, newInt)).toBe(digest({ aversion: newInt }));
        },
      ),
    );
  });
});

describe('the digest of a znode that was just created', () => {
  it('needs no more than the CRC of path and data, the zxid and the time', () => {
    const long = fc.nat(Number.MAX_SAFE_INTEGER);
    fc.assert(
      fc.property(long, long, fc.uint8Array(), (zxid, time, data) => {
        const crc = crc32(pathCrc('/created'), data, 0, data.length);
        const stat = { ...ZERO, czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: time, mtime: time };
        expect(digestOfCreated(crc, zxid, time)).toBe(znodeDigest('/created', data, stat));
      }),
    );
  });
});

describe('a digest sum', () => {
  it('counts modulo 2**64 and reads as a signed long', () => {
    const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 0xffffffff }), fc.boolean()), {
      maxLength: 50,
      size: 'max',
    });
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
