import {
  CreateMode,
  ErrorCode,
  type MultiOp,
  OPEN_ACL,
  OpCode,
  Perm,
  type Txn,
  type WriteRequest,
} from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { Identity } from '../base/ports.ts';
import { create, remove, setData } from '../testing/core-requests.ts';
import { ANN, PreparerBench } from '../testing/preparer-bench.ts';
import { PendingZnode } from './pending-znode.ts';

describe('Preparer', () => {
  it('fails a create with the error of the first failing check', () => {
    const bench = new PreparerBench();
    bench.write(create('/e', CreateMode.ephemeral));
    const annOnly = [{ perms: Perm.read, scheme: 'digest', id: 'ann:secret' }];
    bench.write(create('/private', CreateMode.persistent, { acl: annOnly }));
    expect(bench.error(create('/a', 7))).toBe(ErrorCode.badArguments);
    expect(bench.error(create('a'))).toBe(ErrorCode.badArguments);
    expect(bench.error(create('a/b'))).toBe(ErrorCode.noNode);
    expect(bench.error(create('/x/y', CreateMode.persistent, { acl: [] }))).toBe(ErrorCode.invalidACL);
    expect(bench.error(create('/x/y'))).toBe(ErrorCode.noNode);
    expect(bench.error(create('/private/y'))).toBe(ErrorCode.noAuth);
    expect(bench.error(create('/a/'))).toBe(ErrorCode.noNode);
    expect(bench.error(create('/e/'))).toBe(ErrorCode.badArguments);
    expect(bench.error(create('/'))).toBe(ErrorCode.nodeExists);
    expect(bench.error(create('/e/c'))).toBe(ErrorCode.noChildrenForEphemerals);
    expect(bench.error({ ...create('/t', CreateMode.persistentWithTtl) } as WriteRequest)).toBe(ErrorCode.badArguments);
  });

  it('checks a delete in the order path, parent, permission, znode, version, children', () => {
    const bench = new PreparerBench();
    bench.write(create('/a'));
    bench.write(create('/a/b'));
    expect(bench.error(remove('/'))).toBe(ErrorCode.badArguments);
    expect(bench.error(remove('/zookeeper/config'))).toBe(ErrorCode.badArguments);
    expect(bench.error(remove('/x/y'))).toBe(ErrorCode.noNode);
    expect(bench.error(remove('/x'))).toBe(ErrorCode.noNode);
    expect(bench.error(remove('/a', 3))).toBe(ErrorCode.badVersion);
    expect(bench.error(remove('/a'))).toBe(ErrorCode.notEmpty);
    expect(bench.error(remove('/a/b', 0))).toBe(ErrorCode.ok);
    expect(bench.error(remove('/a'))).toBe(ErrorCode.ok);
  });

  it('compares the version of a setACL with the ACL version, not with that of the data', () => {
    const bench = new PreparerBench();
    const setAcl = (version: number): WriteRequest => ({ op: OpCode.setACL, path: '/a', acl: OPEN_ACL, version });
    bench.write(create('/a'));
    for (let i = 0; i < 3; i++) bench.write(setData('/a'));
    expect(bench.error(setAcl(3))).toBe(ErrorCode.badVersion);
    expect(bench.error(setAcl(0))).toBe(ErrorCode.ok);
    expect(bench.error(setAcl(0))).toBe(ErrorCode.badVersion);
    expect(bench.error(setAcl(1))).toBe(ErrorCode.ok);
  });

  it('distinguishes invalid paths from missing znodes, in setData and in the check of a multi', () => {
    const bench = new PreparerBench();
    const checkOf = (path: string): unknown => {
      const txn = bench.multi([{ op: OpCode.check, path, version: -1 }]);
      return txn.type === OpCode.multi ? txn.txns[0] : null;
    };
    for (const path of ['', 'a', '/a/', '/a//b', '/./a', '/\0']) {
      expect(bench.error(setData(path)), `setData of "${path}"`).toBe(ErrorCode.badArguments);
      expect(checkOf(path), `check of "${path}"`).toEqual({ type: OpCode.error, error: ErrorCode.badArguments });
    }
    expect(bench.error(setData('/a'))).toBe(ErrorCode.noNode);
    expect(checkOf('/a')).toEqual({ type: OpCode.error, error: ErrorCode.noNode });
    expect(bench.error(setData('/'))).toBe(ErrorCode.ok);
    expect(checkOf('/')).toMatchObject({ type: OpCode.check });
  });

  it('refuses a quota on the root, which would crash Apache servers', () => {
    const bench = new PreparerBench();
    for (const path of ['', '/a']) {
      if (path !== '') bench.write(create(`/zookeeper/quota${path}`));
      bench.write(create(`/zookeeper/quota${path}/zookeeper_stats`));
      const poisoned = {
        ...setData(`/zookeeper/quota${path}/zookeeper_stats`),
        data: new TextEncoder().encode('much'),
      };
      expect(bench.error(poisoned as WriteRequest)).toBe(ErrorCode.badArguments);
    }
    expect(bench.error(create('/zookeeper/quota/zookeeper_limits'))).toBe(ErrorCode.badArguments);
    expect(bench.error(create('/zookeeper/quota/a/zookeeper_limits'))).toBe(ErrorCode.ok);
  });

  it('refuses the check of a multi without permission to read, before it checks the version', () => {
    const bench = new PreparerBench();
    const acl = [
      { perms: Perm.all & ~Perm.read, scheme: 'world', id: 'anyone' },
      { perms: Perm.read, scheme: 'digest', id: 'ann:secret' },
    ];
    bench.write(create('/a', CreateMode.persistent, { acl: acl }));
    const checkBy = (identities: readonly Identity[], version: number): unknown => {
      const txn = bench.multi([{ op: OpCode.check, path: '/a', version }], 7n, identities);
      return txn.type === OpCode.multi ? txn.txns[0] : null;
    };
    expect(checkBy([], 0)).toEqual({ type: OpCode.error, error: ErrorCode.noAuth });
    expect(checkBy([], 5)).toEqual({ type: OpCode.error, error: ErrorCode.noAuth });
    expect(checkBy([ANN], 0)).toMatchObject({ type: OpCode.check });
    expect(checkBy([ANN], 5)).toEqual({ type: OpCode.error, error: ErrorCode.badVersion });
  });

  it('respects the ACL of a znode that others in flight have written', () => {
    const bench = new PreparerBench(10);
    bench.write(
      create('/a', CreateMode.persistent, { acl: [{ perms: Perm.all, scheme: 'digest', id: 'ann:secret' }] }),
      [ANN],
    );
    for (let i = 0; i < 2; i++) {
      expect(bench.error(setData('/a'), [ANN])).toBe(ErrorCode.ok);
      expect(bench.error(setData('/a'))).toBe(ErrorCode.noAuth);
      expect(bench.error(create('/a/b'))).toBe(ErrorCode.noAuth);
    }
  });

  it("replaces auth entries by the caller's identities", () => {
    const bench = new PreparerBench();
    const acl = [
      { perms: Perm.all, scheme: 'auth', id: '' },
      { perms: Perm.all, scheme: 'auth', id: '' },
    ];
    expect(bench.error(create('/a', 0, { acl: acl }))).toBe(ErrorCode.invalidACL);
    const txn = bench.write(create('/a', 0, { acl: acl }), [{ scheme: 'ip', id: '10.0.0.1' }, ANN]);
    expect(txn).toMatchObject({ acl: [{ perms: Perm.all, scheme: 'digest', id: 'ann:secret' }] });
    expect(bench.error(setData('/a'))).toBe(ErrorCode.noAuth);
    expect(bench.error(setData('/a'), [ANN])).toBe(ErrorCode.ok);
    expect(bench.error(setData('/a'), [{ scheme: 'super', id: '' }])).toBe(ErrorCode.ok);
  });

  it('continues sequence numbers beyond a Java int, and never reuses one', () => {
    const numbers = (bench: PreparerBench, count: number) =>
      Array.from({ length: count }, () => bench.write(create('/q/n-', CreateMode.persistentSequential)));
    expect(numbers(PreparerBench.afterChildren(2 ** 31 - 1), 3)).toMatchObject([
      { path: '/q/n-2147483647' },
      { path: '/q/n-2147483648' },
      { path: '/q/n-2147483649' },
    ]);
    const bench = PreparerBench.afterChildren(2 ** 32 - 2);
    expect(numbers(bench, 2)).toMatchObject([{ path: '/q/n-4294967294' }, { path: '/q/n-4294967295' }]);
    expect(bench.error(create('/q/n-', CreateMode.persistentSequential))).toBe(ErrorCode.nodeExists);
    expect(bench.error(create('/q/plain'))).toBe(ErrorCode.ok);
  });

  it('rolls back a failed multi completely, including the sequence number', () => {
    const bench = new PreparerBench(5);
    bench.write(create('/q'));
    const txn = bench.multi([
      create('/q/n-', CreateMode.persistentSequential) as MultiOp,
      setData('/q') as MultiOp,
      { op: OpCode.check, path: '/q', version: 9 },
      create('/z') as MultiOp,
    ]);
    expect(txn).toMatchObject({
      txns: [
        { type: OpCode.create, path: '/q/n-0000000000' },
        { type: OpCode.setData, version: 1 },
        { type: OpCode.error, error: ErrorCode.badVersion },
        { type: OpCode.error, error: ErrorCode.runtimeInconsistency },
      ],
    });
    expect(bench.write(create('/q/n-', CreateMode.persistentSequential))).toMatchObject({ path: '/q/n-0000000000' });
    expect(bench.error(create('/z'))).toBe(ErrorCode.ok);
    bench.applyAll();
  });

  it('rolls back a failed multi, also of a znode that it deletes and creates again', () => {
    const bench = new PreparerBench(5);
    bench.write(create('/a'));
    const check = { op: OpCode.check, path: '/a', version: 9 } as const;
    bench.multi([remove('/a') as MultiOp, create('/a') as MultiOp, check]);
    expect(bench.error(create('/a'))).toBe(ErrorCode.nodeExists);
    bench.applyAll();
    expect(bench.error(setData('/a', 0))).toBe(ErrorCode.ok);
    expect(bench.error(remove('/a', 1))).toBe(ErrorCode.ok);
    bench.applyAll();
  });

  it('rolls back a failed multi without what was applied while it was prepared: only the tree has that', () => {
    const bench = new PreparerBench(5);
    bench.write(create('/e', CreateMode.ephemeral));
    const check = { op: OpCode.check, path: '/e', version: 9 } as const;
    bench.multi([setData('/e') as MultiOp, check], 8n, [], 1);
    // The tree knows what the session owns; a copy in the overlay would outlive it.
    expect(bench.closeSession(7n)).toMatchObject({ paths: ['/e'] });
    expect(bench.error(create('/e'))).toBe(ErrorCode.ok);
    bench.applyAll();
  });

  it('collects a container or TTL znode only if nothing in flight needs it', () => {
    const bench = new PreparerBench(9);
    const ttl = { ...create('/t', CreateMode.persistentWithTtl), op: OpCode.createTTL, ttl: 500 } as WriteRequest;
    const container = { ...create('/c', CreateMode.container), op: OpCode.createContainer } as WriteRequest;
    for (const request of [ttl, container, create('/c/x'), remove('/c/x')]) bench.write(request);
    bench.applyAll();
    const isCollectable = (path: string): boolean => bench.preparer.isCollectable(path, 1503);
    expect([...bench.database.tree.collectablePaths(1503, 0)]).toEqual(['/c', '/t']);
    expect(['/c', '/t'].map(isCollectable)).toEqual([true, true]);
    bench.write(setData('/t'));
    expect(isCollectable('/t')).toBe(false);
    bench.write(create('/c/y'));
    expect(isCollectable('/c')).toBe(false);
    bench.write(remove('/c/y'));
    expect(isCollectable('/c')).toBe(true);
    bench.write(remove('/c'));
    expect(isCollectable('/c')).toBe(false);
    bench.write(container);
    expect(isCollectable('/c')).toBe(false);
    expect([...bench.database.tree.collectablePaths(1503, 0)]).toEqual(['/c', '/t']);
    expect(isCollectable('/')).toBe(false);
  });

  it('closes a session with the ephemerals that it will own, including those in flight', () => {
    const bench = new PreparerBench(10);
    bench.write(create('/a', CreateMode.ephemeral));
    bench.write(create('/b', CreateMode.ephemeral));
    bench.write(remove('/a'));
    bench.write(create('/c', CreateMode.ephemeral), [], 8n);
    expect(bench.closeSession(7n)).toMatchObject({ paths: ['/b'] });
    expect(bench.error(create('/b'))).toBe(ErrorCode.ok);
    bench.applyAll();
  });

  it('copies the common parent of the parts of a multi at most once', () => {
    const bench = new PreparerBench(10);
    const copies = vi.spyOn(PendingZnode.prototype, 'copy');
    const ops = Array.from({ length: 100 }, (_, i) => [create(`/${i}`), remove(`/${i}`)] as MultiOp[]).flat();
    bench.multi(ops);
    expect(copies).toHaveBeenCalledTimes(0);
    bench.multi(ops);
    expect(copies).toHaveBeenCalledTimes(1);
    bench.applyAll();
    copies.mockRestore();
  });

  it('closes a session without what others have recreated under the same name, even if not yet applied', () => {
    const bench = new PreparerBench(10);
    for (const path of ['/a', '/b', '/c']) bench.write(create(path, CreateMode.ephemeral));
    bench.applyAll();
    for (const path of ['/a', '/b', '/c']) bench.write(remove(path));
    bench.write(create('/a', CreateMode.ephemeral), [], 8n);
    bench.write(create('/b'), [], 8n);
    bench.write(create('/c', CreateMode.ephemeral));
    expect(bench.closeSession(7n)).toMatchObject({ paths: ['/c'] });
    expect(bench.closeSession(8n)).toMatchObject({ paths: ['/a'] });
    bench.applyAll();
    expect(bench.error(create('/b'))).toBe(ErrorCode.nodeExists);
  });
});

/* ------------------------------------------------------------- the pending tree equals the tree after applying ---- */

const paths = fc.constantFrom('/a', '/b', '/a/x', '/a/y', '/a/x/1', '/b/z');
const versions = fc.constantFrom(-1, -1, 0, 1, 2);
const writes: fc.Arbitrary<WriteRequest> = fc.oneof(
  fc.record({ path: paths, flags: fc.constantFrom(0, 0, 1, 2, 3) }).map(({ path, flags }) => create(path, flags)),
  fc.record({ path: paths, version: versions }).map(({ path, version }) => remove(path, version)),
  fc.record({ path: paths, version: versions }).map(({ path, version }) => setData(path, version)),
  paths.map((path) => ({ op: OpCode.setACL, path, acl: OPEN_ACL, version: -1 }) as const),
);
/** Step size of a closeSession that processes one ephemeral per step. */
const SOME = 0.25;
const sessions = fc.constantFrom(7n, 8n);
const steps = fc.array(
  fc.oneof(
    { weight: 10, arbitrary: fc.record({ kind: fc.constant('write' as const), request: writes, session: sessions }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('multi' as const),
        ops: fc.array(
          writes.filter((request) => request.op !== OpCode.setACL),
          { minLength: 1, maxLength: 8 },
        ) as fc.Arbitrary<MultiOp[]>,
        session: sessions,
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('close' as const), session: sessions }) },
  ),
  { maxLength: 60, size: 'max' },
);

describe('PendingTree', () => {
  it('prepares requests exactly as if each had been applied at once', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 20 }), (script, lag) => {
        const prompt = new PreparerBench(0);
        const lagging = new PreparerBench(lag);
        for (const step of script) {
          const [a, b] = [prompt, lagging].map((bench) => {
            if (step.kind === 'write') return bench.write(step.request, [], step.session);
            if (step.kind === 'multi') return bench.multi(step.ops, step.session);
            return bench.closeSession(step.session, bench === prompt ? undefined : SOME);
          });
          expect(sorted(b!)).toEqual(sorted(a!));
        }
        lagging.applyAll();
        expect(lagging.database.tree.treeDigest()).toBe(prompt.database.tree.treeDigest());
        expect(lagging.database.tree.count).toBe(prompt.database.tree.count);
      }),
      { numRuns: 300 },
    );
  });
});

/** The order of a closing session's ephemerals is unspecified. */
function sorted(txn: Txn): Txn {
  return txn.type === OpCode.closeSession ? { ...txn, paths: [...(txn.paths ?? [])].sort() } : txn;
}
