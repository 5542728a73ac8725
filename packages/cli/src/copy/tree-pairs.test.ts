import fc from 'fast-check';
import { expect, test } from 'vitest';
import { arbitraryTree, collect, streamOf } from './testing/arbitrary-tree.ts';
import { compareInTreeOrder } from './tree-entry.ts';
import { pairTrees } from './tree-pairs.ts';

test('every path of two trees comes once, in tree order, with what each tree has there', async () => {
  await fc.assert(
    fc.asyncProperty(arbitraryTree(), arbitraryTree(), async (left, right) => {
      const pairs = await collect(pairTrees(streamOf(left), streamOf(right)));
      const paths = new Set([...left, ...right].map(({ path }) => path));
      expect(pairs.map(({ path }) => path)).toEqual([...paths].toSorted(compareInTreeOrder));
      for (const pair of pairs) {
        expect(pair.left).toBe(left.find(({ path }) => path === pair.path) ?? null);
        expect(pair.right).toBe(right.find(({ path }) => path === pair.path) ?? null);
      }
    }),
  );
});

test('leaving early closes both trees', async () => {
  const closed: string[] = [];
  const tree = async function* (name: string): AsyncGenerator<never, void> {
    try {
      for (;;) yield { path: '/' } as never;
    } finally {
      closed.push(name);
    }
  };
  for await (const _ of pairTrees(tree('left'), tree('right'))) break;
  expect(closed.toSorted()).toEqual(['left', 'right']);
});
