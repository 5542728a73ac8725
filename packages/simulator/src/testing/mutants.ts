import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Mutant } from '../mutations/mutant.ts';
import { readMutations } from '../mutations/mutation.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const MUTATIONS = readMutations(join(ROOT, 'packages/simulator/mutations'));

/** Each case is tried with these seeds until one violates an invariant: unrelated changes alter every seed's run. */
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];

/** The invariant that is violated when the code that upholds it is removed, in which worlds, and a seed that shows it. */
export type MutantCase = readonly [invariant: string, mutation: string, options: string, seed: number];

/** A case takes a second or two, longer on a busy machine. */
const TIMEOUT_MS = 600_000;

/** One test for each case. @returns a simulator of the sources as they are */
export function testMutants(cases: readonly MutantCase[]): () => Promise<Mutant> {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'meerkat-mutants-'));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  describe.concurrent('the checkers find', () => {
    test.each(cases)(
      '%s broken by %s',
      async (invariant, id, options, first) => {
        const mutation = MUTATIONS.find((known) => known.id === id)!;
        const mutant = await Mutant.make(ROOT, directory, mutation);
        const found: string[] = [];
        for (const seed of new Set([first, ...SEEDS])) {
          const words = `--seed ${seed} --servers 3 --minutes 0.2 --traits none ${options}`.split(' ');
          const { broken } = await mutant.run(words);
          if (broken.includes(invariant)) return;
          found.push(`seed ${seed}: ${broken.join(', ') || 'nothing'}`);
        }
        expect.unreachable(`${invariant} is not found; ${found.join('; ')}`);
      },
      TIMEOUT_MS,
    );
  });
  return () => Mutant.make(ROOT, directory, null);
}
