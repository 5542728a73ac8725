import { describe, expect, test } from 'vitest';
import { countSeeds, divide, parseSeeds } from './slices.ts';

describe('seeds', () => {
  test('are one number or a range', () => {
    expect(parseSeeds('17')).toEqual({ first: 17, last: 17 });
    expect(parseSeeds('1..2000')).toEqual({ first: 1, last: 2000 });
  });

  test.each(['', '0', '1..', '5..4', '1-3', '1..2..3', 'all', '1e3', '-1'])('are not %j', (text) => {
    expect(parseSeeds(text)).toBeNull();
  });
});

describe('slices', () => {
  test('contain every seed of every simulation once, the first slices of all simulations coming first', () => {
    expect(divide(['a', 'b'], { first: 3, last: 7 }, [], 2)).toEqual([
      { name: 'a', first: 3, last: 4 },
      { name: 'b', first: 3, last: 4 },
      { name: 'a', first: 5, last: 6 },
      { name: 'b', first: 5, last: 6 },
      { name: 'a', first: 7, last: 7 },
      { name: 'b', first: 7, last: 7 },
    ]);
  });

  test('leave out finished seeds, whatever the sizes of their slices', () => {
    const done = [
      { name: 'a', first: 4, last: 5 },
      { name: 'a', first: 1, last: 2 },
      { name: 'a', first: 5, last: 5 },
      { name: 'a', first: 9, last: 30 },
      { name: 'b', first: 1, last: 100 },
    ];
    expect(divide(['a', 'b'], { first: 2, last: 10 }, done, 5)).toEqual([
      { name: 'a', first: 3, last: 3 },
      { name: 'a', first: 6, last: 8 },
    ]);
  });

  test('are empty when everything is done', () => {
    expect(divide(['a'], { first: 1, last: 4 }, [{ name: 'a', first: 1, last: 4 }], 5)).toEqual([]);
    expect(divide([], { first: 1, last: 4 }, [], 5)).toEqual([]);
  });

  test('have as many seeds in total as were asked for', () => {
    expect(countSeeds(divide(['a', 'b', 'c'], { first: 1, last: 101 }, [], 7))).toBe(303);
  });
});
