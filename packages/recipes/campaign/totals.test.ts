import { expect, test } from 'vitest';
import type { Run } from './seed-outcome.ts';
import { Totals } from './totals.ts';

const run = (title: string, minutes: number, violation: string | null = null): Run => ({
  title,
  virtualMs: minutes * 60_000,
  traces: ['00'],
  cpuMs: 1500,
  violation,
});

test('a table has one row per test, in the order of the simulations, and their sum', () => {
  const totals = new Totals(['locks/mutex', 'queues/queue']);
  totals.add('queues/queue', { seed: 1, runs: [run('nothing is lost', 3)] });
  totals.add('locks/mutex', { seed: 1, runs: [run('one holder', 6), run('skewed', 12)] });
  totals.add('locks/mutex', { seed: 2, runs: [run('one holder', 6, 'two hold it'), run('skewed', 12)] });
  expect(totals.seeds).toBe(3);
  expect(totals.violations).toBe(1);
  expect(totals.format().split('\n')).toEqual([
    '| simulation   | what holds      | seeds | virtual hours | violations | CPU seconds |',
    '| ------------ | --------------- | ----: | ------------: | ---------: | ----------: |',
    '| locks/mutex  | one holder      |     2 |          0.20 |          1 |         3.0 |',
    '| locks/mutex  | skewed          |     2 |          0.40 |          0 |         3.0 |',
    '| queues/queue | nothing is lost |     1 |          0.05 |          0 |         1.5 |',
    '| all          |                 |     5 |          0.65 |          1 |         7.5 |',
  ]);
});
