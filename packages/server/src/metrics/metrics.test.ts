import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Metrics } from './metrics.ts';

const CLOCK = { monotonicMs: () => 0, wallMs: () => 0 };

test('everything that is counted is shown', () => {
  const shown = ['catalogue.ts', 'exposition.ts'].map((file) => readFileSync(new URL(file, import.meta.url), 'utf8'));
  // Private names are none of the object's keys.
  const counted = Object.keys(new Metrics(CLOCK, 1000));
  expect(counted.length).toBeGreaterThan(30);
  expect(counted.filter((name) => !new RegExp(`metrics\\.${name}\\b`).test(shown.join('')))).toEqual([]);
});
