import { expect, test } from 'vitest';
import { TRAITS } from '../traits.ts';
import { PAIRS, pairOf } from './pairs.ts';

test('ten seeds for each pair run every two traits together, in each ensemble', () => {
  const expected = new Set<string>();
  for (const first of TRAITS) {
    for (const second of TRAITS) {
      if (first !== second)
        for (let digit = 0; digit < 10; digit++) expected.add([...[first, second].sort(), digit].join());
    }
  }
  const found = new Set<string>();
  for (let seed = 1000; seed < 1000 + 10 * PAIRS.length; seed++)
    found.add([...[...pairOf(seed)].sort(), seed % 10].join());
  expect(found).toEqual(expected);
  expect(found.size).toBe(10 * PAIRS.length);
});
