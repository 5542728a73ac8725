/** Usage that is counted while the tree changes: the result is that of the tree at the end. */
import { OPEN_ACL, OpCode, type Txn, type Zxid } from '@meerkat/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DataTree, SILENT_EVENTS } from './data-tree.ts';
import { UsageCount } from './usage-count.ts';

const paths = fc
  .array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 4 })
  .map((names) => `/${names.join('/')}`);
const change = fc.record({
  kind: fc.constantFrom('create' as const, 'create' as const, 'set' as const, 'delete' as const),
  path: paths,
  bytes: fc.nat(5),
});
const step = fc.record({ kind: fc.constant('step' as const), count: fc.nat(2) });

class Bench {
  readonly tree = new DataTree({ extendedTypesEnabled: false, digestEnabled: false }, { emit() {} });
  readonly lengths = new Map<string, number>();
  count: UsageCount | null = null;
  #zxid = 0;

  change({ kind, path, bytes }: { kind: 'create' | 'set' | 'delete'; path: string; bytes: number }): void {
    const parent = path.slice(0, path.lastIndexOf('/'));
    const before = this.lengths.get(path);
    const data = new Uint8Array(bytes);
    if (kind === 'create' && before === undefined && (parent === '' || this.lengths.has(parent))) {
      this.#apply({ type: OpCode.create, path, data, acl: OPEN_ACL, isEphemeral: false, parentCversion: -1 });
      this.lengths.set(path, bytes);
      this.count?.onCreated(this.tree.znodes.find(path));
    } else if (kind === 'set' && before !== undefined) {
      this.#apply({ type: OpCode.setData, path, data, version: 1 });
      this.lengths.set(path, bytes);
      this.count?.onDataChanged(this.tree.znodes.find(path), bytes - before);
    } else if (kind === 'delete' && before !== undefined && this.#isLeaf(path)) {
      this.#apply({ type: OpCode.delete, path });
      this.lengths.delete(path);
    }
  }

  usage(top: string): { count: number; bytes: number } {
    const within = [...this.lengths].filter(([path]) => path === top || path.startsWith(`${top}/`));
    return { count: within.length, bytes: within.reduce((sum, [, length]) => sum + length, 0) };
  }

  #isLeaf(path: string): boolean {
    return ![...this.lengths.keys()].some((other) => other.startsWith(`${path}/`));
  }

  #apply(txn: Txn): void {
    const zxid = ++this.#zxid as Zxid;
    this.tree.apply({ sessionId: 7n, cxid: 0, zxid, time: zxid }, txn, SILENT_EVENTS);
  }
}

test('usage counted in steps is that at the time of the last step', () => {
  fc.assert(
    fc.property(
      fc.array(change, { maxLength: 60, size: 'max' }),
      fc.array(fc.oneof(change, step), { maxLength: 80, size: 'max' }),
      fc.constantFrom('/a', '/a/b'),
      (before, during, top) => {
        const bench = new Bench();
        for (const each of before) bench.change(each);
        const { tree } = bench;
        const count = new UsageCount(tree.state, tree.znodes.find(top));
        const wasThere = tree.znodes.find(top) !== 0;
        bench.count = count;
        let isGone = !wasThere;
        for (const each of during) {
          if (each.kind === 'step') count.advance(each.count);
          else bench.change(each);
          isGone ||= tree.znodes.find(top) === 0;
          if (count.isDone) break;
        }
        count.advance(1000);
        expect(count.isDone).toBe(true);
        expect({ count: count.count, bytes: count.bytes }).toEqual(isGone ? { count: 0, bytes: 0 } : bench.usage(top));
        expect(tree.state.observers.size).toBe(0);
      },
    ),
    { numRuns: 2000 },
  );
});
