import { expect, test } from 'vitest';
import { pauseFor } from './write-cost.ts';

test('a pause leaves a client time enough to have an answer before it gives up, after two thirds of its timeout', () => {
  const longest = (timeoutMs: number): number => pauseFor(1e6, 0, true, timeoutMs, 0);
  expect(longest(4000)).toBe(1600);
  expect(longest(10_000)).toBe(4000);
  expect(longest(24_000)).toBe(11_000);
  expect(longest(30_000)).toBe(15_000);
  expect(longest(60_000)).toBe(15_000);
});

test('a pause is of whole milliseconds, as turns count them', () => {
  expect(pauseFor(1, 0, false, 30_000, 0)).toBe(1);
  expect(pauseFor(101, 0, true, 30_000, 0)).toBe(81);
  expect(pauseFor(0, 5, true, 30_000, 7)).toBe(9);
  expect(pauseFor(1e6, 0, true, 4001, 0)).toBe(1601);
});
