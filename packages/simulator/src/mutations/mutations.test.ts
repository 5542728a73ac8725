import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { applyHunk, describeMutation, parseMutation, readMutations, withOutcome } from './mutation.ts';
import { resultOf } from './workshop.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const MUTATIONS = readMutations(join(ROOT, 'packages/simulator/mutations'));

const PATCH = `Mutation: off-by-one
Defect: one too few
Simulate: --servers 3
Test: a/b.test.ts > counts

--- a/a/b.ts
+++ b/a/b.ts
@@ -1,3 +1,3 @@
 first
-second
+2nd
 third
`;

describe('mutations', () => {
  test.each(MUTATIONS)('$id applies to the sources as they are', ({ hunks }) => {
    for (const hunk of hunks) {
      const text = readFileSync(join(ROOT, hunk.file), 'utf8');
      expect(applyHunk(text, hunk)).not.toBe(text);
    }
  });

  test.each(MUTATIONS)('$id names no private member that its files do not have', ({ hunks }) => {
    const mutated = new Map<string, string>();
    for (const hunk of hunks) {
      mutated.set(hunk.file, applyHunk(mutated.get(hunk.file) ?? readFileSync(join(ROOT, hunk.file), 'utf8'), hunk));
    }
    for (const text of mutated.values()) {
      const declared = new Set(Array.from(text.matchAll(/^\s+(?:[a-z]+ |\*)*#(\w+)/gm), ([, name]) => name));
      const named = Array.from(text.matchAll(/\.#(\w+)/g), ([, name]) => name);
      expect(named.filter((name) => !declared.has(name))).toEqual([]);
    }
  });

  test('each names a test that is there, if it names one', () => {
    for (const { id, test: named } of MUTATIONS) {
      if (named === null) continue;
      const path = join(ROOT, named.file);
      expect(existsSync(path), `${id}: ${named.file}`).toBe(true);
      if (named.title !== null) expect(readFileSync(path, 'utf8'), id).toContain(named.title);
    }
  });

  test('each has been found by a seed, has a test that finds it, is refused by the compiler, or says why nothing finds it', () => {
    const unfound = MUTATIONS.filter((mutation) => describeMutation(mutation).endsWith('(nothing)'));
    expect(unfound.map(({ id }) => id)).toEqual([]);
  });
});

describe('a patch', () => {
  test('says what it changes and how that is found', () => {
    expect(parseMutation('off-by-one', PATCH)).toEqual({
      id: 'off-by-one',
      defect: 'one too few',
      simulate: ['--servers', '3'],
      recipe: null,
      test: { file: 'a/b.test.ts', title: 'counts' },
      compiles: true,
      foundBy: null,
      missedBy: null,
      blind: null,
      hunks: [{ file: 'a/b.ts', before: 'first\nsecond\nthird', after: 'first\n2nd\nthird' }],
    });
  });

  test('is found by its lines, wherever they stand', () => {
    const [hunk] = parseMutation('off-by-one', PATCH).hunks;
    expect(applyHunk('zero\nfirst\nsecond\nthird\n', hunk!)).toBe('zero\nfirst\n2nd\nthird\n');
  });

  test('is refused when its lines are not there, or twice', () => {
    const [hunk] = parseMutation('off-by-one', PATCH).hunks;
    expect(() => applyHunk('first\nthird\n', hunk!)).toThrow('no longer has these lines');
    expect(() => applyHunk('first\nsecond\nthird\nfirst\nsecond\nthird\n', hunk!)).toThrow('more than once');
  });

  test('that only takes lines away leaves the others', () => {
    expect(applyHunk('a\nb\nc\n', { file: 'x', before: 'b', after: '' })).toBe('a\nc\n');
  });
});

describe('a test that fails', () => {
  const summary = ' Test Files  1 failed (1)\n      Tests  2 failed | 3 passed (5)\n';
  const late = 'Error: Test timed out in 60000ms.\n';

  test.each([
    ['by what it expects', `AssertionError: expected 1 to be 2\n${summary}`, 'failed'],
    ['partly by its time', `${late}AssertionError: expected 1 to be 2\n${summary}`, 'failed'],
    ['by its time only', `${late}${late}${summary}`, 'late'],
    ['never, as none was run', 'No test files found\n', null],
  ])('%s', (_how, output, result) => expect(resultOf(output, false)).toBe(result));
});

test('a patch keeps what the last seeds have said, above its lines', () => {
  const plain = parseMutation('off-by-one', PATCH);
  const once = withOutcome(PATCH, 'Found', 'seed 3, Z4');
  const twice = withOutcome(once, 'Found', 'seed 12, E8');
  const missed = withOutcome(twice, 'Missed', '200 seeds');
  expect(parseMutation('off-by-one', once)).toEqual({ ...plain, foundBy: 'seed 3, Z4' });
  expect(twice).toBe(PATCH.replace('\n\n--- ', '\nFound: seed 12, E8\n\n--- '));
  expect(parseMutation('off-by-one', missed)).toEqual({ ...plain, missedBy: '200 seeds' });
  expect(withOutcome(missed, 'Found', 'seed 12, E8')).toBe(twice);
  expect(describeMutation(plain)).toBe('off-by-one: one too few (its test)');
  expect(describeMutation(parseMutation('off-by-one', twice))).toBe('off-by-one: one too few (seed 12, E8)');
  expect(describeMutation(parseMutation('off-by-one', missed))).toBe(
    'off-by-one: one too few (its test, not by 200 seeds)',
  );
});
