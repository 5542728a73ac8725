import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { CHECKER_SOURCES, describeRow, readPromises, switchCheckersOff } from './checkers-off.ts';
import type { Mutant } from './mutant.ts';

/** Simulates without a simulator: what each seed breaks. */
function scripted(brokenBy: Readonly<Record<number, readonly string[]>>): Pick<Mutant, 'run'> {
  return {
    run: async (options) => {
      const [first = 0, last = 0] = options[options.indexOf('--seeds') + 1]!.split('..').map(Number);
      const without = options.includes('--without') ? options[options.indexOf('--without') + 1]! : '';
      for (let seed = first; seed <= last; seed++) {
        const broken = (brokenBy[seed] ?? []).filter((invariant) => invariant !== without);
        if (broken.length > 0) return { broken, output: `seed ${seed} fails: …\n`, isLate: false };
      }
      return { broken: [], output: '', isLate: false };
    },
  };
}

const OPTIONS = { seedsMax: 6, aloneAfter: 10, timeoutMs: 60_000 };

test('a seed that the sources as they are fail, too, has caught nothing', async () => {
  const mutant = scripted({ 2: ['C2'], 3: ['Z4', 'Z5'], 5: ['Z4'], 6: ['C2'] });
  const original = scripted({ 2: ['C2'], 6: ['C2'] });
  const { caught, without } = await switchCheckersOff(mutant, original, ['--servers', '3'], OPTIONS);
  expect(caught).toEqual({ seed: 3, invariants: ['Z4', 'Z5'] });
  expect(without.get('Z4')).toEqual({ seed: 3, invariants: ['Z5'] });
  expect(without.get('Z5')).toEqual({ seed: 3, invariants: ['Z4'] });
});

test('a checker without which nothing is noticed is said to be alone', async () => {
  const mutant = scripted({ 1: ['W3'], 4: ['W3', 'C2'], 5: ['W3'] });
  const { without } = await switchCheckersOff(mutant, scripted({ 4: ['C2'] }), [], OPTIONS);
  expect(without).toEqual(new Map([['W3', { seeds: 2, isLate: false }]]));
});

test('no other checker is looked for once one was alone often enough', async () => {
  const mutant = scripted({ 1: ['W3'], 2: ['W3'], 3: ['C2'] });
  const { without } = await switchCheckersOff(mutant, scripted({}), [], { ...OPTIONS, aloneAfter: 2 });
  expect(without).toEqual(new Map([['W3', { seeds: 2, isLate: false }]]));
});

test('what a run would show after its first failure is looked for with that checker switched off', async () => {
  const later = scripted({ 1: ['S3'] });
  const first = scripted({ 1: ['C3'] });
  const mutant = { run: (words: readonly string[]) => (words.includes('--without') ? later : first).run(words) };
  const { without } = await switchCheckersOff(mutant, scripted({}), [], OPTIONS);
  expect(without.get('C3')).toEqual({ seed: 1, invariants: ['S3'] });
});

test('time that is up is told apart from seeds that found nothing', async () => {
  const late: Pick<Mutant, 'run'> = { run: async () => ({ broken: [], output: '', isLate: true }) };
  const nothing = await switchCheckersOff(scripted({}), scripted({}), [], OPTIONS);
  const row = await switchCheckersOff(late, scripted({}), [], OPTIONS);
  expect([describeRow('a', nothing, 6), describeRow('b', row, 6)]).toEqual([
    '| a | nothing in 6 seeds |  |',
    '| b | time was up |  |',
  ]);
});

test('every checked invariant is violated by a case of the mutants, or in a test of its checker', () => {
  const sources = fileURLToPath(new URL('../', import.meta.url));
  const textsOf = (folder: string, name: RegExp): string =>
    readdirSync(join(sources, folder))
      .filter((file) => name.test(file))
      .map((file) => readFileSync(join(sources, folder, file), 'utf8'))
      .join('\n');
  const cases = textsOf('mutations', /^mutants\..*test\.ts$/);
  const tests = textsOf('checkers', /\.test\.ts$/);
  const promises = readPromises(CHECKER_SOURCES.map((name) => join(sources, name)));
  expect(promises.length).toBeGreaterThan(60);
  expect(promises.filter((promise) => !cases.includes(`['${promise}', '`) && !tests.includes(`'${promise}'`))).toEqual(
    [],
  );
});
