import type { Zxid } from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PendingIndex } from './pending-index.ts';
import { PendingZnode } from './pending-znode.ts';

/** Few hashes, so that entries collide. */
function makeZnode(path: string): PendingZnode {
  return new PendingZnode(path, path.length % 3, 1 as Zxid);
}

describe('PendingIndex', () => {
  it('holds the last znode set for each path, and deletes only the given object', () => {
    const paths = fc.integer({ min: 0, max: 60 }).map((n) => `/${'p'.repeat(n % 7)}${n}`);
    const steps = fc.array(fc.record({ path: paths, kind: fc.constantFrom('set', 'delete', 'deleteOther') }), {
      maxLength: 300,
      size: 'max',
    });
    fc.assert(
      fc.property(steps, (script) => {
        const index = new PendingIndex();
        const model = new Map<string, PendingZnode>();
        for (const { path, kind } of script) {
          const znode = makeZnode(path);
          if (kind === 'set') {
            index.set(znode);
            model.set(path, znode);
          } else if (kind === 'delete' && model.has(path)) {
            index.delete(model.get(path)!);
            model.delete(path);
          } else if (kind === 'deleteOther') {
            index.delete(znode);
          }
          for (const [known, value] of model) expect(index.get(known.length % 3, known)).toBe(value);
          expect(index.get(path.length % 3, path)).toBe(model.get(path) ?? null);
        }
      }),
      { numRuns: 30 },
    );
  });
});
