import { expect, it } from 'vitest';
import { hashOf, PathIndex } from './path-index.ts';

// A Map throws at 2**24 entries; this index has 2**24 + 200,000, and stores no path.
it('an index holds more paths than one Map can', () => {
  const hasPath = (number: number, path: string): boolean => path === `/${number}`;
  const index = new PathIndex({ hasPath, hasPathBytes: () => false });
  const find = (path: string): number => index.get(hashOf(path), path);
  const count = 2 ** 24 + 200_000;
  // Only the paths that are looked up need their real hash, which takes long to compute.
  for (let i = 1; i <= count; i++) index.add(i % 997 === 1 ? hashOf(`/${i}`) : Math.imul(i, 0x9e3779b1), i);
  expect(index.size).toBe(count);
  for (let i = 1; i <= count; i += 997) if (find(`/${i}`) !== i) expect.fail(`/${i} is not found`);
  expect(find(`/${count + 1}`)).toBe(0);
});
