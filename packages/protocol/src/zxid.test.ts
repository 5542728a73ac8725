import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  counterOf,
  epochOf,
  formatZxid,
  isZxid,
  MAX_COUNTER,
  MAX_EPOCH,
  makeZxid,
  parseZxid,
  ZXID_NONE,
  ZXID_ZERO,
  type Zxid,
} from './zxid.ts';

test('a zxid is its epoch in the high 32 bits and its counter in the low ones', () => {
  expect(makeZxid(0, 0)).toBe(ZXID_ZERO);
  expect(makeZxid(5, 7)).toBe(0x500000007);
  expect(epochOf(0x5ffffffff as Zxid)).toBe(5);
  expect(counterOf(0x5ffffffff as Zxid)).toBe(MAX_COUNTER);
});

test('every epoch and counter come back, and zxids are ordered by epoch, then counter', () => {
  const part = fc.tuple(fc.nat(MAX_EPOCH), fc.integer({ min: 0, max: MAX_COUNTER }));
  fc.assert(
    fc.property(part, part, ([epoch, counter], [otherEpoch, otherCounter]) => {
      const zxid = makeZxid(epoch, counter);
      expect([epochOf(zxid), counterOf(zxid)]).toEqual([epoch, counter]);
      expect(isZxid(zxid)).toBe(true);
      expect(parseZxid(formatZxid(zxid))).toBe(zxid);
      const isLess = epoch < otherEpoch || (epoch === otherEpoch && counter < otherCounter);
      expect(zxid < makeZxid(otherEpoch, otherCounter)).toBe(isLess);
    }),
  );
});

test('an epoch or counter out of range is refused', () => {
  for (const [epoch, counter] of [
    [-1, 0],
    [MAX_EPOCH + 1, 0],
    [0.5, 0],
    [0, -1],
    [0, MAX_COUNTER + 1],
    [0, Number.NaN],
  ] as const) {
    expect(() => makeZxid(epoch, counter)).toThrow(RangeError);
  }
});

test('no zxid is −1, which has the epoch −1', () => {
  expect(isZxid(-1)).toBe(true);
  expect(epochOf(ZXID_NONE)).toBe(-1);
  expect(counterOf(ZXID_NONE)).toBe(MAX_COUNTER);
  expect(formatZxid(ZXID_NONE)).toBe('ffffffffffffffff');
});

test('what is no exact number, or below −1, is no zxid', () => {
  for (const value of [-2, 2 ** 53, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) expect(isZxid(value)).toBe(false);
});

test('text names a zxid in hexadecimal without prefix', () => {
  expect(formatZxid(0x1a0000000b as Zxid)).toBe('1a0000000b');
  expect(parseZxid('1A0000000b')).toBe(0x1a0000000b);
  for (const text of ['', '0x1', 'g', '-1', '1 ', '00000000000000001', '20000000000000', 'ffffffffffffffff']) {
    expect(parseZxid(text), text).toBeNull();
  }
});
