import { describe, expect, test } from 'vitest';
import { carry } from './carry.ts';
import { applyHunk, parseMutation } from './mutation.ts';

const PATCH = `Mutation: off-by-one
Defect: one too few
Test: a/b.test.ts > counts

--- a/a/b.ts
+++ b/a/b.ts
@@ -1,3 +1,3 @@
 first
-second
+2nd
 third
`;

function carriedTo(sources: Readonly<Record<string, string>>): string | null {
  const { text, lost } = carry(PATCH, new Map(Object.entries(sources)));
  if (lost.length > 0) return null;
  const [hunk] = parseMutation('off-by-one', text).hunks;
  return applyHunk(sources[hunk!.file]!, hunk!);
}

describe('a patch is carried over a refactoring', () => {
  test('and stays as it is while its lines are in their file, wherever they stand', () => {
    const { text } = carry(PATCH, new Map([['a/b.ts', 'x\ny\nfirst\nsecond\nthird\n']]));
    expect(text).toBe(PATCH);
  });

  test('when its lines have moved to another file', () => {
    expect(carriedTo({ 'a/b.ts': 'x\n', 'a/c.ts': 'first\nsecond\nthird\n' })).toBe('first\n2nd\nthird\n');
  });

  test('when the lines around the change are others now', () => {
    expect(carriedTo({ 'a/b.ts': 'x\nsecond\ny\n' })).toBe('x\n2nd\ny\n');
    expect(carriedTo({ 'a/b.ts': 'x\n', 'a/c.ts': 'y\nsecond\nz\n' })).toBe('y\n2nd\nz\n');
  });

  test('within its own file before any other', () => {
    expect(carriedTo({ 'a/b.ts': 'x\nsecond\ny\n', 'a/c.ts': 'second\n' })).toBe('x\n2nd\ny\n');
  });

  test('told from the same lines elsewhere by what stands on one side of them', () => {
    expect(carriedTo({ 'a/b.ts': 'second\nfirst\nsecond\ny\n' })).toBe('second\nfirst\n2nd\ny\n');
    expect(carriedTo({ 'a/b.ts': 'second\ny\nsecond\nthird\n' })).toBe('second\ny\n2nd\nthird\n');
  });

  test('never to one of several places, nor to lines that were rewritten', () => {
    expect(carriedTo({ 'a/b.ts': 'second\nsecond\n' })).toBeNull();
    expect(carriedTo({ 'a/b.ts': 'x\n', 'a/c.ts': 'second\n', 'a/d.ts': 'second\n' })).toBeNull();
    expect(carriedTo({ 'a/b.ts': 'first\nSecond\nthird\n' })).toBeNull();
  });
});
