import {
  type Acl,
  CreateMode,
  ErrorCode,
  type MultiOp,
  OPEN_ACL,
  OpCode,
  Perm,
  type Txn,
  type WriteRequest,
  type Zxid,
} from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Identity } from '../ports.ts';
import { PLAIN_AUTHENTICATOR } from '../testing/plain-authenticator.ts';
import { SILENT_EVENTS } from '../tree/data-tree.ts';
import { Database } from '../tree/database.ts';
import { type PreparedDigest, UNKNOWN_DIGEST } from '../tree/digest.ts';
import { PendingTree } from './pending.ts';
import { Permission } from './permission.ts';
import { Preparer } from './prepare.ts';

const NO_TRACE = { emit() {} };
const ANN: Identity = { scheme: 'digest', id: 'ann:secret' };

/** A preparer on a database of its own; `lag` says how many txns stay in flight before they are applied. */
class Bench {
  readonly database: Database;
  readonly pending: PendingTree;
  readonly preparer: Preparer;
  readonly #lag: number;
  #zxid: number;
  readonly #inFlight: { zxid: Zxid; sessionId: bigint; txn: Txn; digest: bigint | null; prepared: PreparedDigest }[] =
    [];

  constructor(lag = 0, database = new Database({ extendedTypesEnabled: true, digestEnabled: true }, NO_TRACE)) {
    this.#lag = lag;
    this.database = database;
    this.#zxid = database.lastZxid;
    this.pending = new PendingTree(database.tree, true);
    this.preparer = new Preparer(this.pending, new Permission(PLAIN_AUTHENTICATOR, false), database.tree.quotas, {
      extendedTypesEnabled: true,
      enforceQuota: false,
      containerNeverUsedMs: 0,
    });
  }

  /** With a znode /q that has had `count` children. */
  static afterChildren(count: number): Bench {
    const { database } = new Bench();
    const q = { type: OpCode.create, path: '/q', data: null, acl: OPEN_ACL, isEphemeral: false, parentCversion: 1 };
    database.apply({ sessionId: 7n, cxid: 0, zxid: 1 as Zxid, time: 1 }, q as Txn, SILENT_EVENTS);
    database.tree.state.countCreated(database.tree.find('/q'), count, 0);
    return new Bench(0, database);
  }

  write(request: WriteRequest, identities: readonly Identity[] = [], sessionId = 7n): Txn {
    return this.#send(sessionId, (zxid) =>
      this.preparer.prepareWrite(request, { sessionId, cxid: 0, zxid, time: 1000 + zxid }, identities),
    );
  }

  multi(ops: readonly MultiOp[], sessionId = 7n): Txn {
    return this.#send(sessionId, (zxid) =>
      this.preparer.prepareMulti({ op: OpCode.multi, ops }, { sessionId, cxid: 0, zxid, time: 1000 + zxid }, []),
    );
  }

  closeSession(sessionId: bigint): Txn {
    return this.#send(sessionId, (zxid) => this.preparer.prepareCloseSession(sessionId, zxid));
  }

  error(request: WriteRequest, identities: readonly Identity[] = []): number {
    const txn = this.write(request, identities);
    return txn.type === OpCode.error ? txn.error : ErrorCode.ok;
  }

  applyAll(): void {
    while (this.#inFlight.length > 0) this.#applyOldest();
  }

  #send(sessionId: bigint, prepare: (zxid: Zxid) => Txn): Txn {
    const zxid = ++this.#zxid as Zxid;
    const txn = prepare(zxid);
    // With a lag, as the pipeline does: what prepare has computed is handed on; without, the tree computes it.
    const prepared = this.#lag > 0 ? this.preparer.digestOf(txn) : UNKNOWN_DIGEST;
    this.#inFlight.push({ zxid, sessionId, txn, digest: this.pending.treeDigest(), prepared });
    while (this.#inFlight.length > this.#lag) this.#applyOldest();
    return txn;
  }

  #applyOldest(): void {
    const { zxid, sessionId, txn, digest, prepared } = this.#inFlight.shift()!;
    this.database.apply({ sessionId, cxid: 0, zxid, time: 1000 + zxid }, txn, SILENT_EVENTS, prepared);
    this.pending.onApplied(zxid);
    expect(this.database.tree.treeDigest()).toBe(digest);
  }
}

function create(path: string, flags: number = CreateMode.persistent, acl: readonly Acl[] = OPEN_ACL): WriteRequest {
  return { op: OpCode.create, path, data: new Uint8Array(3), acl, flags, ttl: -1 };
}
const remove = (path: string, version = -1): WriteRequest => ({ op: OpCode.delete, path, version });
const setData = (path: string, version = -1): WriteRequest => ({
  op: OpCode.setData,
  path,
  data: new Uint8Array(5),
  version,
});

describe('Preparer', () => {
  it('decides a create by the first failing check of the order', () => {
    const bench = new Bench();
    bench.write(create('/e', CreateMode.ephemeral));
    const annOnly = [{ perms: Perm.read, scheme: 'digest', id: 'ann:secret' }];
    bench.write(create('/private', CreateMode.persistent, annOnly));
    expect(bench.error(create('/a', 7))).toBe(ErrorCode.badArguments);
    expect(bench.error(create('a'))).toBe(ErrorCode.badArguments);
    expect(bench.error(create('a/b'))).toBe(ErrorCode.noNode);
    expect(bench.error(create('/x/y', CreateMode.persistent, []))).toBe(ErrorCode.invalidACL);
    expect(bench.error(create('/x/y'))).toBe(ErrorCode.noNode);
    expect(bench.error(create('/private/y'))).toBe(ErrorCode.noAuth);
    expect(bench.error(create('/a/'))).toBe(ErrorCode.noNode);
    expect(bench.error(create('/e/'))).toBe(ErrorCode.badArguments);
    expect(bench.error(create('/'))).toBe(ErrorCode.nodeExists);
    expect(bench.error(create('/e/c'))).toBe(ErrorCode.noChildrenForEphemerals);
    expect(bench.error({ ...create('/t', CreateMode.persistentWithTtl) } as WriteRequest)).toBe(ErrorCode.badArguments);
  });

  it('decides a delete by the order path, parent, permission, znode, version, children', () => {
    const bench = new Bench();
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

  it('tells a path that is none from one that has no znode, in setData and in the check of a multi', () => {
    const bench = new Bench();
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

  it('replaces auth entries by what the caller has shown to be', () => {
    const bench = new Bench();
    const acl = [
      { perms: Perm.all, scheme: 'auth', id: '' },
      { perms: Perm.all, scheme: 'auth', id: '' },
    ];
    expect(bench.error(create('/a', 0, acl))).toBe(ErrorCode.invalidACL);
    const txn = bench.write(create('/a', 0, acl), [{ scheme: 'ip', id: '10.0.0.1' }, ANN]);
    expect(txn).toMatchObject({ acl: [{ perms: Perm.all, scheme: 'digest', id: 'ann:secret' }] });
    expect(bench.error(setData('/a'))).toBe(ErrorCode.noAuth);
    expect(bench.error(setData('/a'), [ANN])).toBe(ErrorCode.ok);
    expect(bench.error(setData('/a'), [{ scheme: 'super', id: '' }])).toBe(ErrorCode.ok);
  });

  it('goes on with sequence numbers beyond those of a Java int, and never gives one out twice', () => {
    const numbers = (bench: Bench, count: number) =>
      Array.from({ length: count }, () => bench.write(create('/q/n-', CreateMode.persistentSequential)));
    expect(numbers(Bench.afterChildren(2 ** 31 - 1), 3)).toMatchObject([
      { path: '/q/n-2147483647' },
      { path: '/q/n-2147483648' },
      { path: '/q/n-2147483649' },
    ]);
    const bench = Bench.afterChildren(2 ** 32 - 2);
    expect(numbers(bench, 2)).toMatchObject([{ path: '/q/n-4294967294' }, { path: '/q/n-4294967295' }]);
    expect(bench.error(create('/q/n-', CreateMode.persistentSequential))).toBe(ErrorCode.nodeExists);
    expect(bench.error(create('/q/plain'))).toBe(ErrorCode.ok);
  });

  it('takes back everything of a multi that fails, the sequence number included', () => {
    const bench = new Bench(5);
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

  it('collects a container or TTL znode only if nothing in flight needs it', () => {
    const bench = new Bench(9);
    const ttl = { ...create('/t', CreateMode.persistentWithTtl), op: OpCode.createTTL, ttl: 500 } as WriteRequest;
    const container = { ...create('/c', CreateMode.container), op: OpCode.createContainer } as WriteRequest;
    for (const request of [ttl, container, create('/c/x'), remove('/c/x')]) bench.write(request);
    bench.applyAll();
    const isCollectable = (path: string): boolean => bench.preparer.isCollectable(path, 1503);
    expect(bench.database.tree.collectablePaths(1503, 0)).toEqual(['/c', '/t']);
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
    expect(bench.database.tree.collectablePaths(1503, 0)).toEqual(['/c', '/t']);
    expect(isCollectable('/')).toBe(false);
  });

  it('closes a session with the ephemerals that it will own, those in flight included', () => {
    const bench = new Bench(10);
    bench.write(create('/a', CreateMode.ephemeral));
    bench.write(create('/b', CreateMode.ephemeral));
    bench.write(remove('/a'));
    bench.write(create('/c', CreateMode.ephemeral), [], 8n);
    expect(bench.closeSession(7n)).toMatchObject({ paths: ['/b'] });
    expect(bench.error(create('/b'))).toBe(ErrorCode.ok);
    bench.applyAll();
  });
});

/* ---------------------------------------------------------------- the tree as it will be is the tree that comes ---- */

const paths = fc.constantFrom('/a', '/b', '/a/x', '/a/y', '/a/x/1', '/b/z');
const versions = fc.constantFrom(-1, -1, 0, 1, 2);
const writes: fc.Arbitrary<WriteRequest> = fc.oneof(
  fc.record({ path: paths, flags: fc.constantFrom(0, 0, 1, 2, 3) }).map(({ path, flags }) => create(path, flags)),
  fc.record({ path: paths, version: versions }).map(({ path, version }) => remove(path, version)),
  fc.record({ path: paths, version: versions }).map(({ path, version }) => setData(path, version)),
  paths.map((path) => ({ op: OpCode.setACL, path, acl: OPEN_ACL, version: -1 }) as const),
);
const steps = fc.array(
  fc.oneof(
    { weight: 10, arbitrary: writes.map((request) => ({ kind: 'write', request }) as const) },
    {
      weight: 3,
      arbitrary: fc
        .array(
          writes.filter((request) => request.op !== OpCode.setACL),
          { minLength: 1, maxLength: 4 },
        )
        .map((ops) => ({ kind: 'multi', ops: ops as MultiOp[] }) as const),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'close' } as const) },
  ),
  { maxLength: 60 },
);

describe('PendingTree', () => {
  it('lets requests in flight decide exactly as if each had been applied at once', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 20 }), (script, lag) => {
        const prompt = new Bench(0);
        const lagging = new Bench(lag);
        for (const step of script) {
          const [a, b] = [prompt, lagging].map((bench) => {
            if (step.kind === 'write') return bench.write(step.request);
            if (step.kind === 'multi') return bench.multi(step.ops);
            return bench.closeSession(7n);
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

/** The order of a closing session's ephemerals is nobody's promise. */
function sorted(txn: Txn): Txn {
  return txn.type === OpCode.closeSession ? { ...txn, paths: [...(txn.paths ?? [])].sort() } : txn;
}
