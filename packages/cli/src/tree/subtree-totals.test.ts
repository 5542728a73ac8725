import type { Stat } from '@meerkat/client';
import { expect, test } from 'vitest';
import { SubtreeTotals } from './subtree-totals.ts';

test('subtrees are summed up down to a depth, and what is deeper belongs to them', () => {
  const totals = new SubtreeTotals(1);
  const walk: readonly (readonly [string, number, number, boolean])[] = [
    ['/a', 0, 1, false],
    ['/a/b', 1, 10, false],
    ['/a/b/c', 2, 100, false],
    ['/a/b/c/d', 3, 1000, true],
    ['/a/e', 1, 20, true],
    ['/z', 0, 5, false],
  ];
  for (const [path, depth, dataLength, isEphemeral] of walk) {
    totals.add({ path, depth, children: [], data: null, stat: { dataLength, isEphemeral } as Stat });
  }
  expect(totals.kept.map(({ path, own, bytes, znodes, ephemerals }) => [path, own, bytes, znodes, ephemerals])).toEqual(
    [
      ['/a', 1, 1131, 5, 2],
      ['/a/b', 10, 1110, 3, 1],
      ['/a/e', 20, 20, 1, 1],
      ['/z', 5, 5, 1, 0],
    ],
  );
});
