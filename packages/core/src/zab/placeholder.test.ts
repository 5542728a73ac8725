import { makeZxid, type Zxid } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { makeEntry } from '../testing/history-text.ts';
import { firstMissing, isPlaceholder, makePlaceholder } from './placeholder.ts';

const z = makeZxid;

test.each<[string, Zxid, Zxid, Zxid | null]>([
  ['nothing behind the txn before', z(2, 5), z(2, 6), null],
  ['what lies between in one epoch', z(2, 5), z(2, 9), z(2, 6)],
  ['nothing where an epoch begins', z(2, 5), z(3, 1), null],
  ['the first of an epoch', z(2, 5), z(3, 4), z(3, 1)],
  ['nothing when there is too much of it', z(2, 5), z(2, 50_000), null],
  ['nothing behind what is later', z(2, 5), z(2, 4), null],
  ['nothing before what is no txn', z(2, 5), z(3, 0), null],
])('%s is missing', (_what, last, next, first) => {
  expect(firstMissing(last, next)).toBe(first);
});

test('a placeholder is an error txn without a session, MARSHALLINGERROR', () => {
  const { entry, payload } = makePlaceholder(z(5, 7));
  const expected = bytesOf((list) => list.long(0n).int(0).long(0x500000007n).long(0n).int(-1).int(-5));
  expect(payload).toEqual(expected);
  expect(entry.header.zxid).toBe(z(5, 7));
  expect(isPlaceholder(payload)).toBe(true);
});

test('no txn of a session is taken for a placeholder', () => {
  expect(
    isPlaceholder(
      bytesOf((list) =>
        list
          .long(1n << 32n)
          .int(0)
          .long(7n)
          .long(0n)
          .int(-1)
          .int(-5),
      ),
    ),
  ).toBe(false);
  expect(isPlaceholder(bytesOf((list) => list.long(1n).int(0).long(7n).long(0n).int(-1).int(-5)))).toBe(false);
  expect(isPlaceholder(bytesOf((list) => list.long(0n).int(0).long(7n).long(0n).int(20).text('/c')))).toBe(false);
  expect(isPlaceholder(makeEntry(z(1, 1)).payload)).toBe(false);
});
