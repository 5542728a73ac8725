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
