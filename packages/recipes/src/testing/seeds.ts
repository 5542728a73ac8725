import { env } from 'node:process';

/**
 * The seeds that a simulation of this package runs with: the first third of 1 to `defaultCount`, in `npm run test:long`
 * the second third; or those of the environment variable SEEDS. `npm run simulate:recipes` is for many.
 *
 *     SEEDS=1..2000 npx vitest run packages/recipes/src/locks/mutex.simulation.test.ts
 *     SEEDS=1234 …
 */
export function seeds(defaultCount: number): number[] {
  const { SEEDS: asked = '' } = env;
  const third = Math.ceil(defaultCount / 3);
  if (asked === '') return env['TESTS'] === 'long' ? range(third + 1, 2 * third) : range(1, third);
  const match = /^(\d+)(?:\.\.(\d+))?$/.exec(asked.trim());
  if (match === null) throw new Error(`SEEDS is a number or a range such as 1..2000, not ${asked}`);
  const first = Number(match[1]);
  return range(first, match[2] === undefined ? first : Number(match[2]));
}

/** The timeout of a simulation, milliseconds: far more than it needs, so that it does not fail on a slow machine. */
export function testTimeoutMs(seedCount: number): number {
  return 300_000 + seedCount * 20_000;
}

function range(first: number, last: number): number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
}
