/** Usage that is counted while the tree changes: the result is that of the tree at the end. */
import { OPEN_ACL, OpCode, type Txn, type Zxid } from '@meerkat/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DataTree, SILENT_EVENTS } from './data-tree.ts';
import { UsageCount } from './usage-count.ts';

const NAMES = ['a', 'b', 'c'];
/** Leaves of the planted tree, most of the time. */
const paths = fc
  .tuple(
    fc.constantFrom('/a', '/a', '/a', '/b'),
    fc.array(fc.constantFrom(...NAMES), { minLength: 2, maxLength: 3 }),
    fc.nat(9),
  )
  .map(([top, names, chance]) => (chance === 0 ? top : `${top}/${names.join('/')}`));
const change = fc.record({
  kind: fc.constantFrom('create' as const, 'create' as const, 'set' as const, 'delete' as const, 'delete' as const),
  path: paths,
  bytes: fc.nat(5),
});
const step = fc.record({ kind: fc.constant('step' as const), count: fc.nat(2) });
/** Several changes between two steps: a number that is freed is used again. */
const steps = fc.oneof({ weight: 4, arbitrary: change }, { weight: 1, arbitrary: step });

class Bench {
  readonly tree = new DataTree({ extendedTypesEnabled: false, digestEnabled: false }, { emit() {} });
  readonly lengths = new Map<string, number>();
  count: UsageCount | null = null;
  /** Znodes that were created or deleted during the count. */
  changes = 0;
  #zxid = 0;

  /** /a with children, and their children. */
  plant(): void {
    const children = NAMES.map((name) => `/a/${name}`);
    const leaves = children.flatMap((child) => NAMES.map((name) => `${child}/${name}`));
    for (const path of ['/a', ...children, ...leaves]) this.change({ kind: 'create', path, bytes: 1 });
  }

  change({ kind, path, bytes }: { kind: 'create' | 'set' | 'delete'; path: string; bytes: number }): void {
    const parent = path.slice(0, path.lastIndexOf('/'));
    const before = this.lengths.get(path);
    const data = new Uint8Array(bytes);
    if (kind === 'create' && before === undefined && (parent === '' || this.lengths.has(parent))) {
      this.#apply({ type: OpCode.create, path, data, acl: OPEN_ACL, isEphemeral: false, parentCversion: -1 });
      this.lengths.set(path, bytes);
      this.#onChanged();
      this.count?.onCreated(this.tree.znodes.find(path));
    } else if (kind === 'set' && before !== undefined) {
      this.#apply({ type: OpCode.setData, path, data, version: 1 });
      this.lengths.set(path, bytes);
      this.count?.onDataChanged(this.tree.znodes.find(path), bytes - before);
    } else if (kind === 'delete' && before !== undefined && this.#isLeaf(path)) {
      this.#apply({ type: OpCode.delete, path });
      this.lengths.delete(path);
      this.#onChanged();
    }
  }

  #onChanged(): void {
    if (this.count !== null) this.changes++;
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
  let changes = 0;
  fc.assert(
    fc.property(
      fc.array(change, { maxLength: 20, size: 'max' }),
      fc.array(steps, { maxLength: 80, size: 'max' }),
      fc.constantFrom('/a', '/a', '/a/b'),
      (before, during, top) => {
        const bench = new Bench();
        bench.plant();
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
        changes += bench.changes;
        count.advance(1000);
        expect(count.isDone).toBe(true);
        expect({ count: count.count, bytes: count.bytes }).toEqual(isGone ? { count: 0, bytes: 0 } : bench.usage(top));
        expect(tree.state.observers.size).toBe(0);
      },
    ),
    { numRuns: 2000 },
  );
  expect(changes).toBeGreaterThan(5000);
});
