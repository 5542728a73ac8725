/**
 * Replaces `src/testing/seeds.ts` outside of vitest. There `SEEDS` selects the seeds of a whole process; here a process
 * is given one seed after the other.
 */
const current: number[] = [1];

export { testTimeoutMs } from '../src/testing/seeds.ts';

export function setSeed(seed: number): void {
  current[0] = seed;
}

/** The current seed, always in the same array. */
export function seeds(): readonly number[] {
  return current;
}
