/** Which checkers find which mutation, each of them switched off in turn. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Mutant, MutantRun } from './mutant.ts';
import type { Workshop } from './workshop.ts';

/** What a seed that fails has broken. */
export interface Catch {
  readonly seed: number;
  /** Each once, the earliest first. */
  readonly invariants: readonly string[];
}

/** No other checker finds a mutation: as often as was requested, or in all seeds. */
export interface Alone {
  /** Seeds in which the checker has caught the mutation, and without it none has. */
  readonly seeds: number;
  /** True: the time was up before it was known. */
  readonly isLate: boolean;
}

export interface CheckersOff {
  readonly caught: Catch | null;
  /** With one of those that have caught it switched off. Without any other, the same seed fails in the same way. */
  readonly without: ReadonlyMap<string, Catch | Alone>;
  /** True: the time was up before a seed had failed. */
  readonly isLate: boolean;
}

export interface CheckersOffOptions {
  /** Seeds that are tried, from 1 on. */
  readonly seedsMax: number;
  /** A checker is alone when it has caught the mutation in so many seeds and without it no seed of them fails. */
  readonly aloneAfter: number;
  /** For one mutation. */
  readonly timeoutMs: number;
}

/**
 * A run is the same without a checker that has nothing to say in it. So only those that have caught the mutation are
 * switched off, one at a time, and only in the seeds in which no other has caught it: a run ends at the first that does.
 *
 * @param original the sources as they are: a seed that fails there too says nothing about the mutation
 */
export async function switchCheckersOff(
  mutant: Pick<Mutant, 'run'>,
  original: Pick<Mutant, 'run'>,
  shape: readonly string[],
  { seedsMax, aloneAfter, timeoutMs }: CheckersOffOptions,
): Promise<CheckersOff> {
  const endMs = performance.now() + timeoutMs;
  const run = (from: number, to: number, without: readonly string[]): Promise<MutantRun> =>
    mutant.run(['--seeds', `${from}..${to}`, ...shape, ...without], Math.max(1, endMs - performance.now()));

  const failed: Catch[] = [];
  let next = 1;
  /** The seed that fails as the `index`th, counted from 0; null: there are not so many. */
  const failure = async (index: number): Promise<Catch | 'late' | null> => {
    while (failed.length <= index) {
      if (next > seedsMax) return null;
      const { broken, output, isLate } = await run(next, seedsMax, []);
      if (isLate) return 'late';
      const text = /^seed (\d+) fails/m.exec(output)?.[1];
      const seed = text === undefined ? seedsMax : Number(text);
      next = seed + 1;
      if (text === undefined) return null;
      if ((await original.run(['--seeds', `${seed}..${seed}`, ...shape])).broken.length > 0) continue;
      failed.push({ seed, invariants: broken });
    }
    return failed[index]!;
  };

  const findWithout = async (invariant: string): Promise<Catch | Alone> => {
    for (let seeds = 0; seeds < aloneAfter; seeds++) {
      const found = await failure(seeds);
      if (found === 'late') return { seeds, isLate: true };
      if (found === null) return { seeds, isLate: false };
      const others = found.invariants.filter((other) => other !== invariant);
      if (others.length > 0) return { seed: found.seed, invariants: others };
      const { broken, isLate } = await run(found.seed, found.seed, ['--without', invariant]);
      if (isLate) return { seeds, isLate: true };
      if (broken.length > 0) return { seed: found.seed, invariants: broken };
    }
    return { seeds: aloneAfter, isLate: false };
  };

  const caught = await failure(0);
  const without: Map<string, Catch | Alone> = new Map();
  if (caught === 'late' || caught === null) return { caught: null, without, isLate: caught === 'late' };
  for (const invariant of caught.invariants) without.set(invariant, await findWithout(invariant));
  return { caught, without, isLate: false };
}

/** A row of the table: what catches a mutation, and what does when that is switched off. */
export function describeRow(id: string, { caught, without, isLate }: CheckersOff, seedsMax: number): string {
  const nothing = isLate ? 'time was up' : `nothing in ${seedsMax} seeds`;
  const catcher = caught === null ? nothing : `${caught.invariants.join(' ')}, seed ${caught.seed}`;
  const others = [...without].map(([invariant, other]) => `without ${invariant}: ${describeOther(other)}`);
  return `| ${id} | ${catcher} | ${others.join('; ')} |`;
}

function describeOther(other: Catch | Alone): string {
  if ('seed' in other) return `${other.invariants.join(' ')}, seed ${other.seed}`;
  return `nothing in ${other.seeds} seed${other.seeds === 1 ? '' : 's'}${other.isLate ? ', then time was up' : ''}`;
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

/** Files and folders of the simulator's sources that report violated invariants. */
export const CHECKER_SOURCES: readonly string[] = [
  'checkers',
  'run-checkers.ts',
  'simulate.ts',
  'recovery.ts',
  'at-rest.ts',
];

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
