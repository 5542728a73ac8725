import { makeZxid, type Zxid } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { hasAllOf } from './history.ts';

const end = (currentEpoch: number, lastZxid: Zxid) => ({ currentEpoch, lastZxid });

test.each([
  ['the same', end(2, makeZxid(2, 5)), end(2, makeZxid(2, 5)), true],
  ['a shorter one of the same epoch', end(2, makeZxid(2, 5)), end(2, makeZxid(2, 4)), true],
  ['a longer one of the same epoch', end(2, makeZxid(2, 5)), end(2, makeZxid(2, 6)), false],
  ['a longer one of an older epoch', end(3, makeZxid(1, 1)), end(2, makeZxid(2, 6)), true],
  ['a shorter one of a later epoch', end(2, makeZxid(2, 6)), end(3, makeZxid(1, 1)), false],
])('a leader has all of %s: epoch before length', (_what, leader, other, isSo) => {
  expect(hasAllOf(leader, other)).toBe(isSo);
});
