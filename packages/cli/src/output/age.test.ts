import { expect, test } from 'vitest';
import { age } from './age.ts';

test('an age is reported in its largest unit, and a time ahead as such', () => {
  const ages = [0, 999, 1000, 59_999, 60_000, 3_600_000, 86_399_999, 86_400_000, 900 * 86_400_000];
  expect(ages.map((ms) => age(1e12 - ms, 1e12))).toEqual([
    'now',
    'now',
    '1 s ago',
    '59 s ago',
    '1 min ago',
    '1 h ago',
    '23 h ago',
    '1 d ago',
    '900 d ago',
  ]);
  expect(age(1e12 + 120_000, 1e12)).toBe('in 2 min');
});
