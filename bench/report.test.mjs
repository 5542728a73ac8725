import { expect, test } from 'vitest';
import { formatTable, median, ratioOf } from './report.mjs';

test('the median of an even number of values lies between the middle two', () => {
  expect(median([9, 1, 5])).toBe(5);
  expect(median([9, 1, 5, 7])).toBe(6);
});

test('the ratio is the median over pairs, not that of the medians', () => {
  const row = { title: 'x', unit: '', reference: [10, 100, 20], meerkat: [20, 100, 80] };
  expect(ratioOf(row)).toEqual({ median: 2, min: 1, max: 4 });
});

test('a row shows both engines, the ratio with its range, and whether limits are met', () => {
  const table = formatTable(
    [
      {
        title: 'reads',
        unit: '',
        reference: [100, 100],
        meerkat: [400, 600],
        must: { ratioMin: 4 },
        aim: { ratioMin: 8 },
      },
      { title: 'gap', unit: 'ms', reference: [], meerkat: [160, 150], must: { valueMax: 300 }, aim: { valueMax: 150 } },
    ],
    'Other',
  );
  expect(table.split('\n').slice(2)).toEqual([
    '| reads | 100 | 500 | 5.00× (4.00 … 6.00) | ≥ 4× ✓ | ≥ 8× ✗ |',
    '| gap | – | 155 ms | – | ≤ 300 ms ✓ | ≤ 150 ms ✗ |',
  ]);
});
