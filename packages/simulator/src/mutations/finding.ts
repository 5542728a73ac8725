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
  const { id, simulate, recipe, test, compiles } = mutation;
  workshop.apply(mutation);
  try {
    if (!compiles) {
      const isRefused = (await workshop.compile('packages/simulator')) !== null;
      const seconds = (performance.now() - began) / 1000;
      return { id, bySeeds: null, byTest: `${isRefused ? '' : 'not '}by the compiler`, isFound: isRefused, seconds };
    }
    const isTried = simulate !== null && options.seedsMax > 0;
    // The tests run from the sources.
    if (isTried) await workshop.build();
    const isRecipeTried = recipe !== null && options.seedsMax > 0;
    const seeds = isTried
      ? await findBySeeds(simulate, workshop, original, options)
      : isRecipeTried
        ? await findByRecipe(recipe, workshop, original, options)
        : NO_SEEDS;
    const result = test === null ? 'passed' : await workshop.test(test);
    const hasTestFailed = test !== null && result === 'failed' && (await original.test(test)) === 'passed';
    const name = test === null ? '' : (test.title ?? test.file.slice(test.file.lastIndexOf('/') + 1));
    const without = result === 'late' ? `time was up in ${name}` : `not by ${name}`;
    return {
      id,
      bySeeds: seeds.text,
      byTest: test === null ? '' : hasTestFailed ? name : without,
      isFound: seeds.isFound || hasTestFailed,
      seconds: (performance.now() - began) / 1000,
    };
  } finally {
    workshop.restore();
  }
}

/** Reported for seeds, or a test, that were not reached. */
const TIME_UP = 'time was up';
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
    if (failure === null) break;
    if ('lateAfter' in failure) {
      const after = Math.max(failure.lateAfter, first - 1);
      return { text: after === 0 ? TIME_UP : `${TIME_UP} after seed ${after}`, isFound: false };
    }
    const { seed, invariant } = failure;
    const control = await original.simulate(simulate, { first: seed, last: seed }, timeoutMs);
    if (control === null) return { text: `seed ${seed}, ${invariant}`, isFound: true };
    first = seed + 1;
  }
  return { text: `none of ${seedsMax}`, isFound: false };
}

async function findByRecipe(
  recipe: string,
  workshop: Workshop,
  original: Workshop,
  { seedsMax, timeoutMs }: FindingOptions,
): Promise<{ readonly text: string; readonly isFound: boolean }> {
  const failed = await workshop.simulateRecipe(recipe, { first: 1, last: seedsMax }, timeoutMs);
  if (failed === 'late') return { text: TIME_UP, isFound: false };
  for (const seed of failed) {
    const control = await original.simulateRecipe(recipe, { first: seed, last: seed }, timeoutMs);
    if (control.length === 0) return { text: `seed ${seed} of ${recipe}`, isFound: true };
  }
  return { text: `none of ${seedsMax}`, isFound: false };
}
