/** No prepared txn is longer than the limit, and a request that would need one changes nothing. */
import {
  type Acl,
  CreateMode,
  DIGEST_VERSION,
  ErrorCode,
  JuteWriter,
  type MultiOp,
  OPEN_ACL,
  OpCode,
  type Txn,
  type WriteRequest,
  writeTxn,
  writeTxnDigest,
  type Zxid,
} from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { create, remove } from '../testing/core-requests.ts';
import { PreparerBench } from '../testing/preparer-bench.ts';
import { pathsWithin } from './close-session-paths.ts';

function payloadBytes(txn: Txn): number {
  const writer = new JuteWriter();
  writeTxn(writer, { sessionId: 1n, cxid: 2, zxid: 3 as Zxid, time: 4 }, txn);
  writeTxnDigest(writer, DIGEST_VERSION, 0n);
  return writer.position;
}

function setData(path: string, bytes: number): WriteRequest {
  return { op: OpCode.setData, path, data: new Uint8Array(bytes), version: -1 };
}

/** The limit that the largest of these txns just fits. */
function limitFor(txn: Txn): number {
  return payloadBytes(txn);
}

describe('a txn that is too long', () => {
  const ann: Acl = { perms: 31, scheme: 'digest', id: 'ann:x' };

  it.each<readonly [string, WriteRequest, Txn]>([
    ['setData', setData('/a', 700), { type: OpCode.setData, path: '/a', data: new Uint8Array(700), version: 1 }],
    [
      'create',
      { op: OpCode.create, path: '/é', data: new Uint8Array(700), acl: OPEN_ACL, flags: 0, ttl: -1 },
      {
        type: OpCode.create,
        path: '/é',
        data: new Uint8Array(700),
        acl: OPEN_ACL,
        isEphemeral: false,
        parentCversion: 1,
      },
    ],
    [
      'a sequential create, by the ten digits',
      { op: OpCode.create2, path: '/a/n-', data: new Uint8Array(700), acl: OPEN_ACL, flags: 2, ttl: -1 },
      {
        type: OpCode.create2,
        path: '/a/n-0000000000',
        data: new Uint8Array(700),
        acl: OPEN_ACL,
        isEphemeral: false,
        parentCversion: 1,
      },
    ],
    [
      'setACL',
      { op: OpCode.setACL, path: '/a', acl: [ann, { ...ann, id: 'bob:'.padEnd(700, 'x') }], version: -1 },
      { type: OpCode.setACL, path: '/a', acl: [ann, { ...ann, id: 'bob:'.padEnd(700, 'x') }], version: 1 },
    ],
    ['delete', remove('/long'.padEnd(700, 'x')), { type: OpCode.delete, path: '/long'.padEnd(700, 'x') }],
  ])('is refused, and one byte less is accepted: %s', (_what, request, txn) => {
    for (const [limit, error] of [
      [limitFor(txn), ErrorCode.ok],
      [limitFor(txn) - 1, ErrorCode.marshallingError],
    ] as const) {
      const bench = new PreparerBench(0, { txnBytesMax: 2000 });
      bench.write(create('/a'));
      bench.write(create('/long'.padEnd(700, 'x')));
      const limited = new PreparerBench(0, { database: bench.database, txnBytesMax: limit });
      const before = bench.database.tree.treeDigest();
      expect(limited.error(request)).toBe(error);
      expect(bench.database.tree.treeDigest() === before).toBe(error !== ErrorCode.ok);
    }
  });

  it('counts auth entries in their expanded form', () => {
    const bench = new PreparerBench(0, { txnBytesMax: 1000 });
    const identities = Array.from({ length: 10 }, (_, i) => ({ scheme: 'digest', id: `user-${i}:x` }));
    const entries = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ perms: i + 1, scheme: 'auth', id: '' }));
    expect(bench.error(create('/a', 0, { acl: entries(3) }), identities)).toBe(ErrorCode.ok);
    expect(bench.error(create('/b', 0, { acl: entries(4) }), identities)).toBe(ErrorCode.marshallingError);
    expect(bench.database.tree.znodes.find('/b')).toBe(0);
  });

  it('may be a multi: the part that exceeds the limit fails, and no part is applied', () => {
    const bench = new PreparerBench(3, { txnBytesMax: 1000 });
    for (const path of ['/a', '/b', '/c', '/d']) bench.write(create(path));
    const parts = ['/a', '/b', '/c', '/d'].map((path) => setData(path, 280) as MultiOp);
    const failed = bench.multi(parts);
    expect(failed).toMatchObject({
      txns: [
        { type: OpCode.setData },
        { type: OpCode.setData },
        { type: OpCode.setData },
        { type: OpCode.error, error: ErrorCode.marshallingError },
      ],
    });
    expect(bench.multi(parts.slice(0, 3))).toMatchObject({ txns: [{ version: 1 }, { version: 1 }, { version: 1 }] });
    bench.applyAll();
  });

  it('is not made smaller by a multi that failed before', () => {
    const bench = new PreparerBench(0, { txnBytesMax: 1000 });
    expect(bench.multi([remove('/none') as MultiOp])).toMatchObject({ txns: [{ error: ErrorCode.noNode }] });
    // Together they are longer than a txn may be.
    for (const path of ['/a', '/b', '/c', '/d']) {
      expect(bench.error({ ...create(path), data: new Uint8Array(400) } as WriteRequest)).toBe(ErrorCode.ok);
    }
  });

  it('drops the contents of the parts before the failed one if they do not fit together with the errors', () => {
    const bench = new PreparerBench(0, { txnBytesMax: 1000 });
    bench.write(create('/a'));
    const ops = [setData('/a', 880), remove('/none'), ...Array.from({ length: 20 }, () => remove('/a'))] as MultiOp[];
    const txn = bench.multi(ops);
    expect(txn).toMatchObject({
      txns: [
        { type: OpCode.error, error: ErrorCode.ok },
        { type: OpCode.error, error: ErrorCode.noNode },
        ...Array.from({ length: 20 }, () => ({ type: OpCode.error, error: ErrorCode.runtimeInconsistency })),
      ],
    });
    expect(payloadBytes(txn)).toBeLessThanOrEqual(1000);
  });
});

describe('the closeSession of a session with more ephemerals than one txn can list', () => {
  it('is one txn that lists one of each parent, and deletes all', () => {
    const bench = new PreparerBench(4, { txnBytesMax: 1000 });
    for (const path of ['/p', '/q', '/p/deep']) bench.write(create(path));
    const parents = ['', '/p', '/p/deep', '/q'];
    const names = Array.from({ length: 60 }, (_, i) => `${parents[i % 4]}/ephemeral-${i}`);
    for (const path of names) bench.write(create(path, CreateMode.ephemeral));
    const txn = bench.closeSession(7n);
    expect(txn).toMatchObject({ type: OpCode.closeSession, paths: { length: 4 } });
    bench.applyAll();
    expect(names.filter((path) => bench.database.tree.znodes.find(path) !== 0)).toEqual([]);
    expect([...bench.database.tree.ephemeralsOf(7n)]).toEqual([]);
  });

  it('lists as many as fit if there are too many parents, and all if they fit', () => {
    const owned = Array.from({ length: 20 }, (_, i) => `/${i}/é`);
    const whole = payloadBytes({ type: OpCode.closeSession, paths: owned });
    expect(pathsWithin(owned, whole)).toEqual(owned);
    for (let limit = whole - 1; limit >= 48; limit--) {
      const paths = pathsWithin(owned, limit);
      expect(payloadBytes({ type: OpCode.closeSession, paths })).toBeLessThanOrEqual(limit);
      expect(paths.length).toBeGreaterThanOrEqual(Math.floor((limit - 48) / 10));
    }
  });
});

/* ----------------------------------------------------------------------------------------- any request ---- */

const names = fc.constantFrom('/a', '/b', '/a/x', '/a/yy', '/é', '/é/𝄞', `/${'l'.repeat(60)}`);
const flags = fc.constantFrom(0, 1, 1, 2, 3);
const sizes = fc.nat(120);
const write: fc.Arbitrary<WriteRequest> = fc.oneof(
  fc.record({ path: names, flags, size: sizes }).map(
    ({ path, flags, size }): WriteRequest => ({
      op: OpCode.create,
      path,
      data: new Uint8Array(size),
      acl: OPEN_ACL,
      flags,
      ttl: -1,
    }),
  ),
  fc.record({ path: names, size: sizes }).map(({ path, size }) => setData(path, size)),
  fc.record({ path: names, count: fc.nat(6) }).map(
    ({ path, count }): WriteRequest => ({
      op: OpCode.setACL,
      path,
      acl: Array.from({ length: count }, (_, i) => ({ perms: 31, scheme: 'digest', id: `user-${i}:x` })),
      version: -1,
    }),
  ),
  names.map((path) => remove(path)),
);
const step = fc.oneof(
  { weight: 6, arbitrary: write.map((request) => ({ kind: 'write', request }) as const) },
  {
    weight: 2,
    arbitrary: fc
      .array(
        write.filter(({ op }) => op !== OpCode.setACL),
        { minLength: 1, maxLength: 8 },
      )
      .map((ops) => ({ kind: 'multi', ops: ops as MultiOp[] }) as const),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'close' } as const) },
);

it('for any request the txn is within the limit and matches its digest', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60, size: 'max' }),
      fc.integer({ min: 150, max: 500 }),
      fc.nat(5),
      (steps, txnBytesMax, lag) => {
        const bench = new PreparerBench(lag, { txnBytesMax });
        for (const one of steps) {
          const txn =
            one.kind === 'write'
              ? bench.write(one.request)
              : one.kind === 'multi'
                ? bench.multi(one.ops)
                : bench.closeSession(7n);
          expect(payloadBytes(txn)).toBeLessThanOrEqual(txnBytesMax);
        }
        bench.applyAll();
      },
    ),
    { numRuns: 300 },
  );
});

it('is prepared as if there had been no request before, also after failures', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 30, size: 'max' }),
      fc.integer({ min: 150, max: 500 }),
      (steps, txnBytesMax) => {
        const prepare = (bench: PreparerBench, one: (typeof steps)[number]): Txn => {
          if (one.kind === 'write') return bench.write(one.request);
          return one.kind === 'multi' ? bench.multi(one.ops) : bench.closeSession(7n);
        };
        const used = new PreparerBench(0, { txnBytesMax });
        const { database } = new PreparerBench();
        for (const one of steps) {
          const unused = new PreparerBench(0, { database, txnBytesMax });
          expect(prepare(used, one)).toEqual(prepare(unused, one));
        }
      },
    ),
    { numRuns: 200 },
  );
});
