import { expect, test } from 'vitest';
import type { Run } from './seed-outcome.ts';
import { Tally } from './tally.ts';

const run = (title: string, minutes: number, violation: string | null = null): Run => ({
  title,
  virtualMs: minutes * 60_000,
  traces: ['00'],
  cpuMs: 1500,
  violation,
});

test('a table has a row a test, in the order of the simulations, and their sum', () => {
  const tally = new Tally(['locks/mutex', 'queues/queue']);
  tally.add('queues/queue', { seed: 1, runs: [run('nothing is lost', 3)] });
  tally.add('locks/mutex', { seed: 1, runs: [run('one holder', 6), run('skewed', 12)] });
  tally.add('locks/mutex', { seed: 2, runs: [run('one holder', 6, 'two hold it'), run('skewed', 12)] });
  expect(tally.seeds).toBe(3);
  expect(tally.violations).toBe(1);
  expect(tally.format().split('\n')).toEqual([
    '| simulation   | what holds      | seeds | virtual hours | violations | CPU seconds |',
    '| ------------ | --------------- | ----: | ------------: | ---------: | ----------: |',
    '| locks/mutex  | one holder      |     2 |          0.20 |          1 |         3.0 |',
    '| locks/mutex  | skewed          |     2 |          0.40 |          0 |         3.0 |',
    '| queues/queue | nothing is lost |     1 |          0.05 |          0 |         1.5 |',
    '| all          |                 |     5 |          0.65 |          1 |         7.5 |',
  ]);
});
