/** A multiRead that takes several slices returns what it would have returned at once. */
import { JuteWriter, type MultiReadOp, OPEN_ACL, OpCode, type Txn, type Zxid } from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TraceEvent } from '../base/ports.ts';
import { PLAIN_AUTHENTICATOR } from '../testing/plain-authenticator.ts';
import { DataTree, SILENT_EVENTS } from '../tree/data-tree.ts';
import type { Client, ReplyOutput } from './client.ts';
import { MultiRead, type MultiReadParts } from './multi-read.ts';
import { Permission } from './permission.ts';
import { PiecePool } from './piece-pool.ts';
import { ReadAccess } from './read-access.ts';
import { WorkMeter } from './work-meter.ts';

const BOB_ONLY = [{ perms: 31, scheme: 'digest', id: 'bob:x' }];
const MANY_CHILDREN = 1500;
/** More operations than fit into one slice. */
const OPS = 300;

class Bench {
  readonly trace: TraceEvent[] = [];
  readonly tree = new DataTree({ extendedTypesEnabled: true, digestEnabled: true }, { emit() {} });
  readonly parts: MultiReadParts;
  readonly replies: { readonly error: number; readonly bytes: Buffer | null }[] = [];
  readonly client: Client;
  #zxid = 0;

  constructor(multiReadBytesMax = 2 ** 24) {
    const access = new ReadAccess(this.tree, new Permission(PLAIN_AUTHENTICATOR, false));
    const trace = { emit: (event: TraceEvent) => void this.trace.push(event) };
    this.parts = { tree: this.tree, access, work: new WorkMeter(), trace, multiReadBytesMax, pieces: new PiecePool() };
    const output: ReplyOutput = {
      isTooMuch: false,
      reply: (_xid, _zxid, record) => void this.replies.push({ error: 0, bytes: Buffer.concat(record.pieces) }),
      beginReply: (_xid, _zxid, error) => {
        this.replies.push({ error, bytes: null });
        return new JuteWriter();
      },
      endReply() {},
      holdEvents() {},
    };
    const remote = { ip: new Uint8Array(4), host: '10.0.0.1', port: 1 };
    this.client = { remote, session: null, output } satisfies Partial<Client> as Client;
    for (const path of ['/a', '/a/x', '/b', '/c', '/many']) this.create(path);
    for (let i = 0; i < MANY_CHILDREN; i++) this.create(`/many/${i}`);
  }

  create(path: string, data = 'new'): void {
    if (this.tree.znodes.find(path) !== 0) return;
    const bytes = Buffer.from(data);
    this.apply({ type: OpCode.create, path, data: bytes, acl: OPEN_ACL, isEphemeral: false, parentCversion: -1 });
  }

  apply(txn: Txn): void {
    const zxid = ++this.#zxid as Zxid;
    this.tree.apply({ sessionId: 1n, cxid: 0, zxid, time: zxid }, txn, SILENT_EVENTS);
  }

  change(kind: 'create' | 'delete' | 'setData' | 'setACL', path: string): void {
    const znode = this.tree.znodes.find(path);
    if (kind === 'create') this.create(path);
    else if (znode === 0) return;
    else if (kind === 'setData')
      this.apply({ type: OpCode.setData, path, data: Buffer.from(`${this.#zxid}`), version: 1 });
    else if (kind === 'setACL') this.apply({ type: OpCode.setACL, path, acl: BOB_ONLY, version: 1 });
    else if (this.tree.znodes.childCountOf(znode) === 0 && path !== '/') this.apply({ type: OpCode.delete, path });
  }

  read(ops: readonly MultiReadOp[]): MultiRead {
    return new MultiRead(ops, [{ scheme: 'digest', id: 'ann:x' }], this.parts);
  }

  answerOf(read: MultiRead): { readonly error: number; readonly bytes: Buffer | null } {
    read.answer(this.client, 1, 0);
    return this.replies.pop()!;
  }
}

const paths = fc.constantFrom('/', '', '/a', '/a/x', '/a/y', '/b', '/c', '/none', '/many', '/many/7', '/many/new');
const ops = fc.array(
  fc.record({ op: fc.constantFrom(OpCode.getData, OpCode.getChildren), path: paths }) as fc.Arbitrary<MultiReadOp>,
  { minLength: 1, maxLength: 8 },
);
const changes = fc.array(
  fc.tuple(fc.constantFrom('create' as const, 'delete' as const, 'setData' as const, 'setACL' as const), paths),
  { maxLength: 6 },
);

/** Repeats the operations so that each occurs near both ends. */
function repeated(pattern: readonly MultiReadOp[]): MultiReadOp[] {
  return Array.from({ length: OPS }, (_, i) => pattern[i % pattern.length]!);
}

/** A checksum that ignores the order of bytes, because the order of child names is unspecified. */
function sumOf(bytes: Buffer | null): number {
  let sum = 0;
  for (const byte of bytes ?? []) sum += byte * byte;
  return sum;
}

describe('a multiRead', () => {
  test('in slices returns the same as at once, regardless of changes meanwhile', () => {
    let slices = 0;
    fc.assert(
      fc.property(ops, fc.array(changes, { maxLength: 12, size: 'max' }), (pattern, script) => {
        const bench = new Bench();
        const all = repeated(pattern);
        const atOnce = bench.read(all);
        while (!atOnce.advance());
        const expected = bench.answerOf(atOnce);
        const read = bench.read(all);
        let isDone = read.advance();
        for (const some of script) {
          for (const [kind, path] of some) bench.change(kind, path === '' ? '/' : path);
          if (!isDone) isDone = read.advance();
          slices++;
        }
        while (!isDone) isDone = read.advance();
        const answer = bench.answerOf(read);
        expect(answer.error).toBe(expected.error);
        expect(answer.bytes?.length).toBe(expected.bytes?.length);
        expect(sumOf(answer.bytes)).toBe(sumOf(expected.bytes));
        const hasNames = pattern.some(({ path }) => path === '/many');
        if (!hasNames) expect(answer.bytes?.equals(expected.bytes!)).toBe(true);
        expect(bench.tree.state.observers.size).toBe(0);
      }),
      { numRuns: 60 },
    );
    expect(slices).toBeGreaterThan(50);
  });

  test('in slices returns each znode once as at the beginning, also the next one', () => {
    const bench = new Bench();
    const all = Array.from({ length: OPS }, (_, i) => ({ op: OpCode.getData, path: `/u${i}` }) as const);
    for (const { path } of all) bench.create(path);
    const atOnce = bench.read(all);
    while (!atOnce.advance());
    const read = bench.read(all);
    while (!read.advance()) for (const { path } of all) bench.change('setData', path);
    expect(bench.answerOf(read)).toEqual(bench.answerOf(atOnce));
  });

  test('in slices shows quota usage as it was at the beginning, although no txn changes it directly', () => {
    const bench = new Bench();
    const quota = '/zookeeper/quota/a';
    bench.create(quota);
    bench.create(`${quota}/zookeeper_limits`, 'count=100,bytes=-1');
    bench.create(`${quota}/zookeeper_stats`, '');
    const read = bench.read([
      ...repeated([{ op: OpCode.getData, path: '/none' }]),
      { op: OpCode.getData, path: `${quota}/zookeeper_stats` },
    ]);
    expect(read.advance()).toBe(false);
    bench.create('/a/new');
    while (!read.advance());
    expect(bench.answerOf(read).bytes?.toString()).toMatch('count=2,bytes=6');
    const data = bench.tree.dataOf(bench.tree.znodes.find(`${quota}/zookeeper_stats`));
    expect(Buffer.from(data!).toString()).toBe('count=3,bytes=9');
  });

  test('with too long results is refused before they are copied, and the reason is traced', () => {
    const bench = new Bench(100_000);
    bench.create('/big', 'x'.repeat(40_000));
    const getBig: MultiReadOp = { op: OpCode.getData, path: '/big' };
    const fits = bench.read([getBig, getBig]);
    expect(fits.advance()).toBe(true);
    expect(bench.answerOf(fits).bytes?.length).toBeGreaterThan(80_000);
    bench.parts.work.charge(0);
    const tooLong = bench.read(new Array<MultiReadOp>(5000).fill(getBig));
    while (!tooLong.advance());
    expect(bench.parts.work.charge(0), 'most of it was never read').toBeLessThan(2000);
    expect(bench.answerOf(tooLong)).toEqual({ error: -5, bytes: null });
    expect(bench.trace).toMatchObject([
      { kind: 'request-refused', reason: expect.stringMatching(/5000 operations.*100000/) },
    ]);
  });

  test.each([
    [1, 0],
    [2, -5],
  ])('with a result of 40 KB that is read early and used %i× is limited like any other', (times, error) => {
    const bench = new Bench(60_000);
    bench.create('/big', 'x'.repeat(40_000));
    const getBig: MultiReadOp = { op: OpCode.getData, path: '/big' };
    const getNone: MultiReadOp = { op: OpCode.getData, path: '/none' };
    const read = bench.read([...repeated([getNone]), ...new Array<MultiReadOp>(times).fill(getBig)]);
    expect(read.advance()).toBe(false);
    const before = read.heldBytes;
    bench.change('setData', '/big');
    expect(read.heldBytes).toBeGreaterThan(before + 40_000);
    while (!read.advance());
    expect(bench.answerOf(read).error).toBe(error);
  });

  test('that is dropped stops observing the tree, also with child names that it is collecting or has begun early', () => {
    const bench = new Bench();
    const { observers } = bench.tree.state;
    const getMany: MultiReadOp = { op: OpCode.getChildren, path: '/many' };
    const collecting = bench.read([getMany]);
    expect(collecting.advance()).toBe(false);
    const early = bench.read([...repeated([{ op: OpCode.getData, path: '/none' }]), getMany]);
    expect(early.advance()).toBe(false);
    bench.create('/many/new');
    expect(observers.size, 'each of them, and its names').toBe(4);
    collecting.drop();
    early.drop();
    expect(observers.size).toBe(0);
  });

  test('with too long results stops observing the tree, also in the middle of child names', () => {
    const bench = new Bench(20_000);
    bench.create('/long');
    for (let i = 0; i < MANY_CHILDREN; i++) bench.create(`/long/${'x'.repeat(20)}${i}`);
    const read = bench.read([{ op: OpCode.getChildren, path: '/long' }]);
    while (!read.advance());
    expect(bench.answerOf(read).error).toBe(-5);
    expect(bench.tree.state.observers.size).toBe(0);
  });

  test('counts the names of many children towards the limit', () => {
    const bench = new Bench(50_000);
    const getMany: MultiReadOp = { op: OpCode.getChildren, path: '/many' };
    const ofOne = bench.read([getMany]);
    while (!ofOne.advance());
    expect(bench.answerOf(ofOne).error).toBe(0);
    const ofMany = bench.read(new Array<MultiReadOp>(9).fill(getMany));
    while (!ofMany.advance());
    expect(bench.answerOf(ofMany).error).toBe(-5);
    expect(bench.tree.state.observers.size).toBe(0);
  });
});
