import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PathIndex } from './path-index.ts';

/** An index over an array of paths; the number of a path is its place in it, from 1 on. */
function makeIndex(): { index: PathIndex; paths: string[] } {
  const paths = [''];
  return { index: new PathIndex({ pathOf: (number) => paths[number]! }), paths };
}

describe('a path index', () => {
  it('finds exactly what was added and not deleted', () => {
    const names = fc.array(fc.tuple(fc.integer({ min: 0, max: 3000 }), fc.boolean()), { maxLength: 4000, size: 'max' });
    fc.assert(
      fc.property(names, (list) => {
        const { index, paths } = makeIndex();
        const model = new Map<string, number>();
        for (const [name, isAdded] of list) {
          const path = `/p/${name}`;
          if (isAdded && !model.has(path)) {
            paths.push(path);
            index.add(path, paths.length - 1);
            model.set(path, paths.length - 1);
          } else if (!isAdded && model.delete(path)) {
            index.delete(path);
          }
        }
        for (let name = 0; name <= 3000; name++) {
          expect(index.get(`/p/${name}`)).toBe(model.get(`/p/${name}`) ?? 0);
        }
        expect(index.size).toBe(model.size);
      }),
      { numRuns: 20 },
    );
  });

  it('asks for a path hardly ever in vain, also where paths differ in the middle or in one character', () => {
    for (const make of [
      (i: number) => `/users/${i}/settings`,
      (i: number) => `/queue/item-${String(i).padStart(10, '0')}`,
      (i: number) => `/${String.fromCharCode(0x4e00 + (i & 0x3fff))}${i >> 14}`,
    ]) {
      let asked = 0;
      const paths = [''];
      const index = new PathIndex({
        pathOf(number) {
          asked++;
          return paths[number]!;
        },
      });
      for (let i = 0; i < 50_000; i++) {
        paths.push(make(i));
        index.add(make(i), i + 1);
      }
      for (let i = 0; i < 50_000; i++) if (index.get(make(i)) !== i + 1) expect.fail(`${make(i)} is not found`);
      expect(asked).toBeLessThan(50_010);
    }
  });

  // A Map throws at 2**24 entries; here they are 2**24 + 200,000, and no path is kept.
  it('holds more paths than one Map can', () => {
    const index = new PathIndex({ pathOf: (number) => `/${number}` });
    const count = 2 ** 24 + 200_000;
    for (let i = 1; i <= count; i++) index.add(`/${i}`, i);
    expect(index.size).toBe(count);
    for (let i = 1; i <= count; i += 997) if (index.get(`/${i}`) !== i) expect.fail(`/${i} is not found`);
    expect(index.get(`/${count + 1}`)).toBe(0);
  });
});
