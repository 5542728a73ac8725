import type { Mutation } from './mutation.ts';
import type { Workshop } from './workshop.ts';

/** What has noticed a mutation. */
export interface Finding {
  readonly id: string;
  /** For people: the first seed that failed and what it broke, or how many did not; null when none were run. */
  readonly bySeeds: string | null;
  /** For people: the test that failed, or did not. */
  readonly byTest: string;
  readonly isFound: boolean;
  /** Of all of it, the building included. */
  readonly seconds: number;
}

export interface FindingOptions {
  readonly seedsMax: number;
  /** Milliseconds for the seeds of one mutation. */
  readonly timeoutMs: number;
}

/**
 * Applies a mutation to a copy, builds it there, and looks for it by seeds and by its test.
 *
 * A seed or a test counts only where the sources as they are pass it: otherwise it has found something else.
 *
 * @param original a copy that is built and is not changed
 */
export async function find(
  mutation: Mutation,
  workshop: Workshop,
  original: Workshop,
  options: FindingOptions,
): Promise<Finding> {
  const began = performance.now();
  const { id, simulate, test } = mutation;
  workshop.apply(mutation);
  try {
    const isTried = simulate !== null && options.seedsMax > 0;
    // The tests run from the sources.
    if (isTried) await workshop.build();
    const seeds = !isTried ? NO_SEEDS : await findBySeeds(simulate, workshop, original, options);
    const hasTestFailed = test !== null && (await workshop.test(test)) && !(await original.test(test));
    const name = test === null ? '' : (test.title ?? test.file.slice(test.file.lastIndexOf('/') + 1));
    return {
      id,
      bySeeds: seeds.text,
      byTest: test === null ? '' : hasTestFailed ? name : `not by ${name}`,
      isFound: seeds.isFound || hasTestFailed,
      seconds: (performance.now() - began) / 1000,
    };
  } finally {
    workshop.restore();
  }
}

const NO_SEEDS = { text: null, isFound: false };

async function findBySeeds(
  simulate: readonly string[],
  workshop: Workshop,
  original: Workshop,
  { seedsMax, timeoutMs }: FindingOptions,
): Promise<{ readonly text: string; readonly isFound: boolean }> {
  const endMs = performance.now() + timeoutMs;
  for (let first = 1; first <= seedsMax; ) {
    const failure = await workshop.simulate(simulate, { first, last: seedsMax }, endMs - performance.now());
    if (failure === 'late') return { text: 'time is up', isFound: false };
    if (failure === null) break;
    const { seed, invariant } = failure;
    const control = await original.simulate(simulate, { first: seed, last: seed }, timeoutMs);
    if (control === null) return { text: `seed ${seed}, ${invariant}`, isFound: true };
    first = seed + 1;
  }
  return { text: `none of ${seedsMax}`, isFound: false };
}
