import { expect, test } from 'vitest';
import { commandOf, type Shape } from '../repeat-command.ts';
import { simulate } from '../simulate.ts';

/** One test for each seed: a virtual minute of all kinds of faults, with no invariant violated. */
export function testSeeds(first: number, count: number, shape: Shape): void {
  const seeds = Array.from({ length: count }, (_, i) => first + i);
  test.each(seeds)(
    'seed %i',
    async (seed) => {
      const { violations, stats } = await simulate({ ...shape, seed });
      const found = violations.map(({ invariant, atMs, message }) => `${invariant} at ${atMs.toFixed(3)}: ${message}`);
      expect(found, commandOf(shape, seed, null)).toEqual([]);
      expect(stats.recoveredMs).not.toBeNull();
    },
    TIMEOUT_MS,
  );
}

/** A seed takes about a second, longer on a busy machine. */
const TIMEOUT_MS = 600_000;
