import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AncestorIndex } from './ancestor-index.ts';

const paths = fc
  .array(fc.constantFrom('a', 'b', 'ab', 'ä', ''), { maxLength: 5 })
  .map((names) => `/${names.filter((name) => name !== '').join('/')}`);

function isAncestor(path: string, of: string): boolean {
  return of !== path && (path === '/' || of.startsWith(`${path}/`));
}

const ITEM = { item: 'x' };

describe('AncestorIndex', () => {
  it('finds the items above a path, nearest first, and the nearest path', () => {
    const step = fc.tuple(fc.boolean(), paths, fc.constantFrom({ item: 'x' }, { item: 'y' }, { item: 'z' }));
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60, size: 'max' }),
        fc.array(paths, { minLength: 1 }),
        (script, asked) => {
          const index = new AncestorIndex<object>();
          const kept = new Map<string, Set<object>>();
          for (const [isAdded, path, item] of script) {
            const items = kept.get(path) ?? new Set();
            if (isAdded) {
              index.add(path, item);
              kept.set(path, items.add(item));
            } else {
              index.delete(path, item);
              items.delete(item);
              if (items.size === 0) kept.delete(path);
            }
          }
          expect(index.size).toBe(kept.size);
          for (const path of asked) {
            const above = [...kept.keys()]
              .filter((other) => isAncestor(other, path))
              .sort((a, b) => b.length - a.length);
            expect(index.above(path)).toEqual(above.flatMap((other) => [...kept.get(other)!]));
            expect(index.nearest(path)).toBe(kept.has(path) ? path : (above[0] ?? null));
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  it('stores nothing at an invalid znode path', () => {
    const index = new AncestorIndex<object>();
    for (const path of ['', 'a', 'xa/b', '//', '//a', '/a/', '/a//b']) {
      index.add(path, ITEM);
      index.delete(path, ITEM);
      index.add(path, ITEM);
    }
    expect(index.size).toBe(0);
    expect(['/a', '/a/b', '/a/b/c'].map((path) => index.nearest(path))).toEqual([null, null, null]);
  });

  it('takes no longer for deeper paths', () => {
    const index = new AncestorIndex<object>();
    for (let i = 0; i < 100; i++) index.add(`/${i}${'/d'.repeat(100_000)}`, { i });
    index.add(`/0${'/d'.repeat(50_000)}/x`, ITEM);
    expect(index.above(`/0${'/d'.repeat(200_000)}`)).toEqual([{ i: 0 }]);
    expect(index.above(`/0${'/d'.repeat(50_000)}/x/y`)).toEqual([ITEM]);
    expect(index.above(`/0${'/d'.repeat(99_999)}`)).toEqual([]);
  });
});
