/**
 * Stands in the place of `src/testing/seeds.ts` outside of vitest. There `SEEDS` decides for a whole process which seeds
 * there are; here a process is given one after the other.
 */
const current: number[] = [1];

export { testTimeoutMs } from '../src/testing/seeds.ts';

export function setSeed(seed: number): void {
  current[0] = seed;
}

/** The seed that is set, in an array that stays the same. */
export function seeds(): readonly number[] {
  return current;
}
