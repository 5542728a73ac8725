import { expect, test } from 'vitest';
import { formatProjection, project } from './projection.mjs';

test('more CPUs help until the core thread is the limit', () => {
  const found = project({ core: 2, process: 12 });
  expect(found.map(({ processors, perSecond, threads, isCore }) => [processors, perSecond, threads, isCore])).toEqual([
    [2, 100_000, 1, false],
    [4, 300_000, 3, false],
    [8, 500_000, 5, true],
    [16, 500_000, 5, true],
    [64, 500_000, 5, true],
  ]);
});

test('the table shows the number of I/O threads for the largest CPU count, and where the core is the limit', () => {
  const rows = [{ title: 'reads', without: 8, core: 2, process: 12 }];
  expect(formatProjection(rows).split('\n').at(-1)).toBe(
    '| reads | 125,000 | 100,000 | 300,000 | 500,000 ◆ | 500,000 ◆ | 500,000 ◆ | 5 |',
  );
});
