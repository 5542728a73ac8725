/** Walks that take several steps while the tree changes: their result is the tree as it was when they began. */
import { type JuteChunks, JuteReader, OPEN_ACL, OpCode, type Txn, type Zxid } from '@meerkat/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ChildNames } from './child-names.ts';
import { DataTree, SILENT_EVENTS } from './data-tree.ts';
import { DescendantCount } from './descendant-count.ts';
import { EphemeralNames } from './ephemeral-names.ts';

const SESSIONS = [7n, 8n];
const paths = fc
  .array(fc.constantFrom('a', 'b', 'ä', 'd'), { minLength: 1, maxLength: 3 })
  .map((names) => `/${names.join('/')}`);
const changes = fc.record({
  kind: fc.constantFrom('create' as const, 'create' as const, 'delete' as const),
  path: paths,
  session: fc.constantFrom(null, ...SESSIONS),
});
const steps = fc.array(fc.oneof(changes, fc.record({ kind: fc.constant('step' as const), count: fc.nat(2) })), {
  maxLength: 80,
  size: 'max',
});

class Bench {
  readonly tree = new DataTree({ extendedTypesEnabled: true, digestEnabled: true }, { emit() {} });
  /** Owners by path; null for what is not an ephemeral. */
  readonly owners = new Map<string, bigint | null>();
  #zxid = 0;

  change({ kind, path, session }: { kind: 'create' | 'delete'; path: string; session: bigint | null }): void {
    const parent = path.slice(0, path.lastIndexOf('/'));
    const isThere = this.owners.has(path);
    if (kind === 'create') {
      const mayHaveChildren = parent === '' || this.owners.get(parent) === null;
      if (isThere || !mayHaveChildren) return;
      const isEphemeral = session !== null;
      this.#apply({ type: OpCode.create, path, data: null, acl: OPEN_ACL, isEphemeral, parentCversion: -1 }, session);
      this.owners.set(path, session);
    } else if (isThere && this.below(path).length === 0) {
      this.#apply({ type: OpCode.delete, path }, null);
      this.owners.delete(path);
    }
  }

  below(path: string): string[] {
    return [...this.owners.keys()].filter((other) => other.startsWith(`${path}/`));
  }

  children(path: string): string[] {
    return this.below(path)
      .map((other) => other.slice(path.length + 1))
      .filter((name) => !name.includes('/'));
  }

  ephemerals(session: bigint, prefix: string): string[] {
    return [...this.owners]
      .filter(([path, owner]) => owner === session && path.startsWith(prefix))
      .map(([path]) => path);
  }

  #apply(txn: Txn, session: bigint | null): void {
    const zxid = ++this.#zxid as Zxid;
    this.tree.apply({ sessionId: session ?? 0n, cxid: 0, zxid, time: zxid }, txn, SILENT_EVENTS);
  }
}

function namesIn({ pieces }: JuteChunks): string[] {
  const reader = new JuteReader(Buffer.concat(pieces));
  const names = Array.from({ length: reader.int() }, () => reader.ustring()!);
  expect(reader).toMatchObject({ failed: false, remaining: 0 });
  return names;
}

test('names and counts are those at the start of a walk, whatever is created and deleted meanwhile', () => {
  fc.assert(
    fc.property(
      fc.array(changes, { maxLength: 60, size: 'max' }),
      steps,
      fc.constantFrom('', '/a', '/ä/b'),
      (before, during, prefix) => {
        const bench = new Bench();
        for (const change of [{ kind: 'create', path: '/a', session: null } as const, ...before]) bench.change(change);
        const { tree } = bench;
        const top = tree.znodes.find('/a');
        // The first create is not undone, so that there is a parent to query.
        if (top === 0) return;
        const expected = {
          children: bench.children('/a').sort(),
          count: bench.below('/a').length,
          ephemerals: bench.ephemerals(7n, prefix).sort(),
        };
        const children = new ChildNames(tree.state, top, tree.lastZxid);
        const count = new DescendantCount(tree.state, top, tree.lastZxid);
        const ephemerals = new EphemeralNames(tree.state, 7n, prefix, tree.lastZxid);
        const walks = new Set([children, count, ephemerals]);
        for (const step of during) {
          if (step.kind !== 'step') bench.change(step);
          else for (const walk of walks) if (walk.advance(step.count)) walks.delete(walk);
        }
        for (const walk of walks) while (!walk.advance(3));
        expect(namesIn(children.chunks).sort()).toEqual(expected.children);
        expect(namesIn(ephemerals.chunks).sort()).toEqual(expected.ephemerals);
        expect(count.count).toBe(expected.count);
        expect(tree.state.observers.size).toBe(0);
      },
    ),
    { numRuns: 2000 },
  );
});
