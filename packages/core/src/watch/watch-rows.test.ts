import { expect, test } from 'vitest';
import { TestRandom } from '../testing/memory-network.ts';
import { NO_ROW, WatchRows } from './watch-rows.ts';

const BLOCK = 4096;

test('rows keep their contents while many others are added and deleted', () => {
  const random = new TestRandom(1);
  const rows = new WatchRows<object>();
  const known = new Map<number, { path: string; owner: object; modes: number }>();
  const check = (row: number): void => {
    const { path, owner, modes } = known.get(row)!;
    expect([rows.pathOf(row), rows.modesOf(row)]).toEqual([path, modes]);
    expect(rows.ownerOf(row)).toBe(owner);
  };
  for (const target of [3 * BLOCK, 0, 1, 0, 2 * BLOCK + 1, BLOCK, 3 * BLOCK, 0]) {
    while (known.size !== target) {
      const isMore = known.size < target;
      // Occasionally one in the other direction.
      if (known.size === 0 || isMore === random.below(8) > 0) {
        const watch = { path: `/${known.size}`, owner: {}, modes: random.below(8) };
        const row = rows.add(watch.path, watch.owner, watch.modes, NO_ROW);
        expect(known.has(row)).toBe(false);
        known.set(row, watch);
      } else {
        const row = [...known.keys()][random.below(Math.min(known.size, 50))]!;
        check(row);
        rows.delete(row);
        known.delete(row);
      }
    }
    for (const row of known.keys()) check(row);
  }
});

test('a row is reused once its watch is deleted', () => {
  const rows = new WatchRows<null>();
  const first = rows.add('/a', null, 1, NO_ROW);
  rows.delete(first);
  expect(rows.add('/b', null, 1, NO_ROW)).toBe(first);
});

test('a block that was emptied and filled again keeps its rows when another one is emptied', () => {
  const rows = new WatchRows<null>();
  const paths = Array.from({ length: BLOCK }, (_, i) => `/${i}`);
  const fill = () => paths.map((path) => rows.add(path, null, 1, NO_ROW));
  for (const row of fill()) rows.delete(row);
  const kept = fill();
  rows.delete(rows.add('/other', null, 1, NO_ROW));
  expect(kept.map((row) => rows.pathOf(row))).toEqual(paths);
});
