import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hashOf, hashOfBytes, PathIndex, type PathSource } from './path-index.ts';

/** Paths by number, from 1 on. */
class Paths implements PathSource {
  readonly paths: string[] = [''];
  asked = 0;

  hasPath(number: number, path: string): boolean {
    this.asked++;
    return this.paths[number] === path;
  }

  hasPathBytes(number: number, bytes: Uint8Array, start: number, end: number): boolean {
    return this.hasPath(number, Buffer.from(bytes.subarray(start, end)).toString());
  }
}

describe('a path index', () => {
  it('finds exactly what was added and not deleted', () => {
    const names = fc.array(fc.tuple(fc.integer({ min: 0, max: 3000 }), fc.boolean()), { maxLength: 4000, size: 'max' });
    fc.assert(
      fc.property(names, (list) => {
        const source = new Paths();
        const index = new PathIndex(source);
        const model = new Map<string, number>();
        for (const [name, isAdded] of list) {
          const path = `/p/${name}`;
          if (isAdded && !model.has(path)) {
            const number = source.paths.push(path) - 1;
            index.add(hashOf(path), number);
            model.set(path, number);
          } else if (!isAdded && model.has(path)) {
            index.delete(hashOf(path), model.get(path)!);
            model.delete(path);
          }
        }
        for (let name = 0; name <= 3000; name++) {
          const path = `/p/${name}`;
          const bytes = Buffer.from(`..${path}`);
          expect(index.get(hashOf(path), path)).toBe(model.get(path) ?? 0);
          expect(index.getBytes(hashOfBytes(bytes, 2, bytes.length), bytes, 2, bytes.length)).toBe(
            model.get(path) ?? 0,
          );
        }
        expect(index.size).toBe(model.size);
      }),
      { numRuns: 20 },
    );
  });

  it('hardly ever compares a path without success, even if paths differ in the middle or in one character', () => {
    for (const make of [
      (i: number) => `/users/${i}/settings`,
      (i: number) => `/queue/item-${String(i).padStart(10, '0')}`,
      (i: number) => `/${String.fromCharCode(0x4e00 + (i & 0x3fff))}${i >> 14}`,
    ]) {
      const source = new Paths();
      const index = new PathIndex(source);
      for (let i = 0; i < 50_000; i++) {
        source.paths.push(make(i));
        index.add(hashOf(make(i)), i + 1);
      }
      for (let i = 0; i < 50_000; i++) {
        if (index.get(hashOf(make(i)), make(i)) !== i + 1) expect.fail(`${make(i)} is not found`);
      }
      expect(source.asked).toBeLessThan(50_010);
    }
  });
});
