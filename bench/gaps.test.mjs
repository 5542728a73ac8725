import { expect, test } from 'vitest';
import { longestGap } from './gaps.mjs';

test('the longest gap is between two successive events, given in any order', () => {
  expect(longestGap([10, 40, 12, 41, 100], { from: 0, until: 50 })).toBe(59);
  expect(longestGap([10, 40, 12, 41], { from: 0, until: 50 })).toBe(28);
});

test('a gap counts in full when it begins before the span or ends after it', () => {
  expect(longestGap([0, 100, 101, 300], { from: 90, until: 101 })).toBe(199);
  expect(longestGap([0, 150, 151, 160], { from: 90, until: 155 })).toBe(150);
});

test('gaps outside the span do not count', () => {
  expect(longestGap([0, 500, 510, 515, 520, 900], { from: 501, until: 518 })).toBe(10);
  expect(longestGap([0, 500, 510], { from: 520, until: 600 })).toBe(Number.POSITIVE_INFINITY);
});

test('no event after the beginning of the span is an infinite gap', () => {
  expect(longestGap([], { from: 1, until: 2 })).toBe(Number.POSITIVE_INFINITY);
  expect(longestGap([0.5], { from: 1, until: 2 })).toBe(Number.POSITIVE_INFINITY);
  expect(longestGap([1.5], { from: 1, until: 2 })).toBe(0);
});
