import { test } from 'vitest';
import { type Fleet, runFleet, type WorldOptions } from './fleet.ts';
import { seeds, testTimeoutMs } from './seeds.ts';

/**
 * A simulation: one test per seed, in its own world. A failure prints its seed, which `SEEDS=17 npx vitest run FILE`
 * reproduces.
 *
 * @param seedCount number of seeds that `npm test` and `npm run test:long` share
 */
export function simulate(
  title: string,
  seedCount: number,
  program: (fleet: Fleet, seed: number) => Promise<void>,
  options: (seed: number) => WorldOptions = () => ({}),
): void {
  test.each(seeds(seedCount))(
    `${title} (seed %i)`,
    (seed) => runFleet(seed, (fleet) => program(fleet, seed), options(seed)),
    testTimeoutMs(1),
  );
}
