/** Which checkers find which mutation, each of them switched off in turn. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Mutant } from './mutant.ts';
import type { Mutation } from './mutation.ts';
import type { Workshop } from './workshop.ts';

/** What the first seed that fails has broken; null: none did. */
export interface Catch {
  readonly seed: number;
  /** Each once, the earliest first. */
  readonly invariants: readonly string[];
}

export interface CheckersOff {
  readonly id: string;
  readonly caught: Catch | null;
  /** With one of those that have caught it switched off. Without any other, the same seed fails in the same way. */
  readonly without: ReadonlyMap<string, Catch | null>;
}

/**
 * A run is the same without a checker that has nothing to say in it. So only those that have caught the mutation are
 * switched off, one at a time.
 *
 * @param original the sources as they are: a seed that fails there too says nothing about the mutation
 */
export async function switchCheckersOff(
  { id, simulate }: Pick<Mutation, 'id' | 'simulate'>,
  mutant: Pick<Mutant, 'run'>,
  original: Pick<Mutant, 'run'>,
  seedsMax: number,
): Promise<CheckersOff> {
  const shape = simulate ?? [];
  const isSound: Map<number, boolean> = new Map();
  const control = async (seed: number): Promise<boolean> => {
    const known = isSound.get(seed);
    if (known !== undefined) return known;
    const { broken } = await original.run(['--seeds', `${seed}..${seed}`, ...shape]);
    isSound.set(seed, broken.length === 0);
    return broken.length === 0;
  };
  const run = async (options: readonly string[], first: number): Promise<Catch | null> => {
    for (let from = first; from <= seedsMax; ) {
      const { broken, output } = await mutant.run(['--seeds', `${from}..${seedsMax}`, ...shape, ...options]);
      const text = /^seed (\d+) fails/m.exec(output)?.[1];
      if (text === undefined) return null;
      const seed = Number(text);
      if (await control(seed)) return { seed, invariants: broken };
      from = seed + 1;
    }
    return null;
  };
  const caught = await run([], 1);
  const without: Map<string, Catch | null> = new Map();
  // No seed before that one has anything to say, whoever is listened to.
  for (const invariant of caught?.invariants ?? []) {
    without.set(invariant, await run(['--without', invariant], caught!.seed));
  }
  return { id, caught, without };
}

/** How many tests of the checkers fail when one says nothing. */
export async function countTestsWithout(invariant: string, workshop: Workshop): Promise<number> {
  workshop.apply({
    hunks: [
      {
        file: 'packages/simulator/src/checkers/violation.ts',
        before: '    if (this.#without.includes(invariant)) return;',
        after: `    if (this.#without.includes(invariant) || invariant === '${invariant}') return;`,
      },
    ],
  });
  try {
    return await workshop.countFailures(['packages/simulator/src/checkers']);
  } finally {
    workshop.restore();
  }
}

/** Files and folders of the simulator's sources that say which promise is broken. */
export const CHECKER_SOURCES: readonly string[] = ['checkers', 'judges.ts', 'simulate.ts'];

/** Numbers of the promises that sources name, in their order: E1 … E14, Z1 …, and so on. */
export function readPromises(paths: readonly string[]): readonly string[] {
  const found: Set<string> = new Set();
  const read = (path: string): void => {
    if (statSync(path).isDirectory()) {
      for (const name of readdirSync(path)) if (!/test/.test(name)) read(join(path, name));
    } else if (path.endsWith('.ts')) {
      for (const [, promise] of readFileSync(path, 'utf8').matchAll(/'([A-Z]\d{1,2})'/g)) found.add(promise!);
    }
  };
  for (const path of paths) read(path);
  return [...found].sort((a, b) => a.charCodeAt(0) - b.charCodeAt(0) || Number(a.slice(1)) - Number(b.slice(1)));
}
