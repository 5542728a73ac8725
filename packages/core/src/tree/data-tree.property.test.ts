/**
 * The tree against the simplest possible model: a Map of plain objects without any caching. After any txns in any order
 * both must show the same; so must a tree that was loaded from a snapshot taken meanwhile.
 */
import { crc32 } from 'node:zlib';
import {
  type Acl,
  JuteWriter,
  type MultiSubTxn,
  makeZxid,
  OPEN_ACL,
  OpCode,
  READ_ACL,
  type Txn,
  type TxnHeader,
  type Zxid,
} from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SILENT_EVENTS, type TreeEvents } from './data-tree.ts';
import { Database } from './database.ts';
import { SnapshotReader } from './snapshot-reader.ts';
import { SnapshotWriter } from './snapshot-writer.ts';

const OPTIONS = { extendedTypesEnabled: true, digestEnabled: true };
const QUIET = { emit() {} };
const STATS_PATH = '/zookeeper/quota/a/zookeeper_stats';

interface ModelZnode {
  data: Buffer | null;
  acl: readonly Acl[];
  czxid: number;
  mzxid: number;
  pzxid: number;
  ctime: number;
  mtime: number;
  version: number;
  sequence: number;
  aversion: number;
  session: bigint;
  persistedOwner: bigint;
}

interface Entry {
  readonly header: TxnHeader;
  readonly txn: Txn;
}

/** Numbers from which a txn is derived that fits the current state. */
interface Choice {
  readonly kind: string;
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

const NAMES = ['a', 'b', 'é', 'a-longer-name'];
const ACLS: readonly (readonly Acl[])[] = [
  OPEN_ACL,
  READ_ACL,
  [{ perms: 3, scheme: 'digest', id: 'ann:x' }],
  [
    { perms: 31, scheme: 'ip', id: '10.0.0.1' },
    { perms: 1, scheme: 'world', id: 'anyone' },
  ],
  [],
];
/** Lengths around the limits of a block's size class, of the largest class and of a page. */
const LENGTHS = [0, 1, 20, 100, 441, 442, 500, 1000, 5000, 16_000, 17_000, 70_000];

const choice = fc.record({
  kind: fc.constantFrom(
    ...['create', 'create', 'create', 'delete', 'setData', 'setAcl', 'closeSession', 'createSession', 'error'],
    ...['multi', 'failedMulti', 'check'],
  ),
  a: fc.nat(1000),
  b: fc.nat(1000),
  c: fc.nat(1000),
});
const choices = (maxLength: number): fc.Arbitrary<Choice[]> => fc.array(choice, { maxLength, size: 'max' });

class Model {
  znodes = new Map<string, ModelZnode>();
  sessions = new Map<bigint, number>();
  events: string[] = [];
  zxid = 0;
  /**
   * Whether every closeSession lists all its paths; otherwise some, or none as before 3.6. A znode that is not listed
   * and no longer exists when the txn is applied again does not raise the pzxid of its parent.
   */
  listsPaths = false;

  constructor() {
    for (const path of ['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config']) {
      this.znodes.set(path, makeZnode({ data: Buffer.alloc(0), acl: OPEN_ACL, zxid: 0, time: 0 }));
    }
    Object.assign(this.znodes.get('/zookeeper/config')!, { acl: READ_ACL, aversion: -1 });
  }

  /** The txn that a choice means in the current state; the model has applied it. */
  next(choice: Choice): Entry {
    const zxid = makeZxid(0, ++this.zxid);
    const header: TxnHeader = { sessionId: BigInt(1 + (choice.a % 3)), cxid: 7, zxid, time: 1000 + this.zxid * 10 };
    return { header, txn: this.#plan(choice, header) };
  }

  /** A create of this path, applied. */
  create(path: string, text: string): Entry {
    const header: TxnHeader = { sessionId: 1n, cxid: 1, zxid: makeZxid(0, ++this.zxid), time: 1000 };
    return { header, txn: this.#create(path, 0, Buffer.from(text), OPEN_ACL, header) };
  }

  #plan(choice: Choice, header: TxnHeader): Txn {
    const { kind, a, b, c } = choice;
    switch (kind) {
      case 'createSession':
        this.sessions.set(header.sessionId, 1000 + b);
        return { type: OpCode.createSession, timeoutMs: 1000 + b };
      case 'closeSession': {
        const owned = this.ephemeralsOf(header.sessionId);
        const some = b % 3 === 1 ? owned.slice(0, c % (owned.length + 1)) : [];
        const listed = this.listsPaths || b % 3 === 0 ? owned : some;
        const rest = owned.filter((path) => !listed.includes(path)).sort();
        for (const path of [...listed, ...rest]) this.#delete(path, header.zxid);
        this.sessions.delete(header.sessionId);
        return { type: OpCode.closeSession, paths: listed.length === 0 && b % 3 === 2 ? null : listed };
      }
      case 'multi': {
        const txns: MultiSubTxn[] = [];
        for (let i = 0; i <= b % 5; i++)
          txns.push(this.#planPart({ kind: PARTS[(a + i * c) % 5]!, a: a + i, b: b * (i + 1), c }, header));
        return { type: OpCode.multi, txns };
      }
      case 'failedMulti': {
        const before = new Map([...this.znodes].map(([path, znode]) => [path, { ...znode }]));
        const events = this.events.length;
        const txns = [this.#planPart({ ...choice, kind: 'create' }, header)];
        this.znodes = before;
        this.events.length = events;
        return { type: OpCode.multi, txns: [...txns, { type: OpCode.error, error: -110 }] };
      }
      default:
        return this.#planPart(choice, header);
    }
  }

  #planPart({ kind, a, b, c }: Choice, header: TxnHeader): MultiSubTxn {
    const own = this.ownPaths();
    const target = own[b % own.length];
    if (kind === 'create') {
      const parents = [
        '/',
        ...own.filter((path) => this.znodes.get(path)!.session === 0n && path.split('/').length < 5),
      ];
      const parent = parents[b % parents.length]!;
      const path = `${parent === '/' ? '' : parent}/${NAMES[c % NAMES.length]}`;
      const data = a % 7 === 0 ? null : Buffer.alloc(LENGTHS[(a + c) % LENGTHS.length]!, a);
      if (!this.znodes.has(path)) return this.#create(path, (a + b) % 5, data, ACLS[b % ACLS.length]!, header);
    } else if (target !== undefined) {
      const znode = this.znodes.get(target)!;
      if (kind === 'delete' && this.childrenOf(target).length === 0) {
        this.#delete(target, header.zxid);
        return { type: c % 3 === 0 ? OpCode.deleteContainer : OpCode.delete, path: target };
      }
      if (kind === 'setData') {
        const data = c % 9 === 0 ? null : Buffer.alloc(LENGTHS[(a + c) % LENGTHS.length]!, c);
        Object.assign(znode, { data, version: znode.version + 1, mzxid: header.zxid, mtime: header.time });
        this.events.push(`changed ${target} ${header.zxid}`);
        return { type: OpCode.setData, path: target, data, version: znode.version };
      }
      if (kind === 'setAcl') {
        Object.assign(znode, { acl: ACLS[c % ACLS.length], aversion: znode.aversion + 1 });
        return { type: OpCode.setACL, path: target, acl: znode.acl, version: znode.aversion };
      }
      if (kind === 'check') return { type: OpCode.check, path: target, version: 1 };
    }
    return kind === 'error' ? { type: OpCode.error, error: -101 } : { type: OpCode.check, path: '/', version: 1 };
  }

  #create(path: string, mode: number, data: Buffer | null, acl: readonly Acl[], header: TxnHeader): MultiSubTxn {
    const parent = this.znodes.get(parentOf(path))!;
    parent.sequence++;
    parent.pzxid = header.zxid;
    const znode = makeZnode({ data, acl, zxid: header.zxid, time: header.time });
    this.znodes.set(path, znode);
    this.events.push(`created ${path} ${parentOf(path)} ${header.zxid}`);
    const common = { path, data, acl, parentCversion: parent.sequence };
    if (mode === 1) {
      Object.assign(znode, { session: header.sessionId, persistedOwner: header.sessionId });
      return { type: OpCode.create2, ...common, isEphemeral: true };
    }
    if (mode === 2) {
      znode.persistedOwner = 0x8000000000000000n;
      return { type: OpCode.createContainer, ...common };
    }
    if (mode === 3) {
      znode.persistedOwner = 0xff00000000000000n + 0x123456789an;
      return { type: OpCode.createTTL, ...common, ttl: 0x123456789a };
    }
    return { type: OpCode.create, ...common, isEphemeral: false };
  }

  #delete(path: string, zxid: number): void {
    this.znodes.delete(path);
    this.znodes.get(parentOf(path))!.pzxid = zxid;
    this.events.push(`deleted ${path} ${parentOf(path)} ${zxid}`);
  }

  /** All created paths, without those of the system. */
  ownPaths(): string[] {
    return [...this.znodes.keys()].filter((path) => path !== '/' && !path.startsWith('/zookeeper'));
  }

  childrenOf(path: string): string[] {
    return [...this.znodes.keys()].filter((child) => child !== '/' && parentOf(child) === path);
  }

  ephemeralsOf(session: bigint): string[] {
    return [...this.znodes].filter(([, znode]) => znode.session === session).map(([path]) => path);
  }
}

const PARTS = ['create', 'setData', 'delete', 'setAcl', 'check'];

function makeZnode(from: { data: Buffer | null; acl: readonly Acl[]; zxid: number; time: number }): ModelZnode {
  const { data, acl, zxid, time } = from;
  const moment = { czxid: zxid, mzxid: zxid, pzxid: zxid, ctime: time, mtime: time };
  return { data, acl, ...moment, version: 0, sequence: 0, aversion: 0, session: 0n, persistedOwner: 0n };
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}

function long(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt.asUintN(64, BigInt(value)));
  return bytes;
}

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

/** The reply to getData according to the protocol. */
function expectedReply(model: Model, path: string, znode: ModelZnode): Buffer {
  const children = model.childrenOf(path).length;
  const data = expectedData(model, path, znode);
  return Buffer.concat([
    int(data === null ? -1 : data.length),
    data ?? Buffer.alloc(0),
    ...[znode.czxid, znode.mzxid, znode.ctime, znode.mtime].map(long),
    ...[znode.version, znode.sequence * 2 - children, znode.aversion].map(int),
    long(znode.session),
    ...[data?.length ?? 0, children].map(int),
    long(znode.pzxid),
  ]);
}

/** The usage that the quota of /a shows is computed from the model. */
function expectedData(model: Model, path: string, znode: ModelZnode): Buffer | null {
  if (path !== STATS_PATH) return znode.data;
  const used = [...model.znodes].filter(([other]) => other === '/a' || other.startsWith('/a/'));
  const bytes = used.reduce((sum, [, { data }]) => sum + (data?.length ?? 0), 0);
  return Buffer.from(`count=${used.length},bytes=${bytes}`);
}

function expectedDigest(model: Model): bigint {
  let sum = 0n;
  for (const [path, znode] of model.znodes) {
    if (path.startsWith('/zookeeper/')) continue;
    const bytes = Buffer.concat([
      Buffer.from(path === '/' ? '' : path),
      znode.data ?? Buffer.alloc(0),
      ...[znode.czxid, znode.mzxid, znode.pzxid, znode.ctime, znode.mtime].map(long),
      ...[znode.version, znode.sequence, znode.aversion].map(int),
      long(znode.persistedOwner),
    ]);
    sum += BigInt(crc32(bytes));
  }
  return BigInt.asIntN(64, sum);
}

function expectSame(database: Database, model: Model): void {
  const { tree, sessions } = database;
  let dataSize = 0;
  for (const [path, znode] of model.znodes) {
    const z = tree.znodes.find(path);
    expect(z, path).toBeGreaterThan(0);
    const writer = new JuteWriter();
    tree.writeDataAndStat(z, writer);
    const expected = expectedReply(model, path, znode);
    expect(Buffer.compare(writer.toBytes(), expected), `reply of ${path}`).toBe(0);
    expect([path, tree.acls.get(tree.znodes.aclOf(z))]).toEqual([path, znode.acl]);
    expect(tree.znodes.sequenceOf(z)).toBe(znode.sequence);
    expect(BigInt.asUintN(64, tree.persistedOwnerOf(z))).toBe(znode.persistedOwner);
    const children: string[] = [];
    tree.forEachChild(z, (child) => children.push(tree.znodes.pathOf(child)));
    expect(children.sort()).toEqual(model.childrenOf(path).sort());
    dataSize += path.length + expected.readInt32BE() + (expected.readInt32BE() < 0 ? 1 : 0);
  }
  expect(tree.count).toBe(model.znodes.size + 1);
  expect(tree.approximateDataSize).toBe(dataSize);
  expect(tree.treeDigest()).toBe(expectedDigest(model));
  for (const session of [1n, 2n, 3n]) {
    expect([...tree.ephemeralsOf(session)].sort()).toEqual(model.ephemeralsOf(session).sort());
  }
  const lists = new Set(
    [...model.znodes.values()].filter(({ acl }) => acl !== OPEN_ACL).map(({ acl }) => JSON.stringify(acl)),
  );
  expect(tree.acls.size).toBe(lists.size);
  expect(sessions).toEqual(model.sessions);
  expect(database.lastZxid).toBe(model.zxid);
}

/** A database and its model, both with a quota on /a. */
function start(): { database: Database; model: Model; log: Entry[]; events: string[]; run: (choice: Choice) => void } {
  const database = new Database(OPTIONS, QUIET);
  const model = new Model();
  const log: Entry[] = [];
  const events: string[] = [];
  const listener: TreeEvents = {
    onCreated: (path, _acl, parent, _parentAcl, zxid) => events.push(`created ${path} ${parent} ${zxid}`),
    onDeleted: (path, _acl, parent, _parentAcl, zxid) => events.push(`deleted ${path} ${parent} ${zxid}`),
    onDataChanged: (path, _acl, zxid) => events.push(`changed ${path} ${zxid}`),
  };
  const apply = (entry: Entry): void => {
    log.push(entry);
    database.apply(entry.header, entry.txn, listener);
  };
  apply(model.create('/zookeeper/quota/a', ''));
  apply(model.create('/zookeeper/quota/a/zookeeper_limits', 'count=1000,bytes=-1'));
  apply(model.create(STATS_PATH, 'count=0,bytes=0'));
  return { database, model, log, events, run: (choice) => apply(model.next(choice)) };
}

function replay(database: Database, log: readonly Entry[], after: Zxid): void {
  for (const { header, txn } of log) if (header.zxid > after) database.apply(header, txn, SILENT_EVENTS);
}

describe('a tree', () => {
  it('equals the model after any txns, and reports the same events in the same order', () => {
    fc.assert(
      fc.property(choices(150), (list) => {
        const { database, model, events, run } = start();
        for (const choice of list) run(choice);
        expectSame(database, model);
        expect(events).toEqual(model.events);
      }),
      { numRuns: 150 },
    );
  });

  it('is unchanged when any suffix of its log is applied a second time', () => {
    fc.assert(
      fc.property(choices(80), fc.nat(80), (list, from) => {
        const { database, model, log, run } = start();
        model.listsPaths = true;
        for (const choice of list) run(choice);
        replay(database, log, makeZxid(0, from));
        expectSame(database, model);
      }),
      { numRuns: 100 },
    );
  });

  it('is the same when loaded from a snapshot taken in slices meanwhile and the log from its zxid on', () => {
    fc.assert(
      fc.property(
        choices(60),
        choices(80),
        fc.nat(300),
        fc.integer({ min: 1, max: 3000 }),
        (before, after, sliceBytes, pieceBytes) => {
          const { database, model, log, run } = start();
          for (const choice of before) run(choice);
          const snapshot = new SnapshotWriter(database);
          const body = new JuteWriter();
          let isDone = false;
          for (const choice of after) {
            if (!isDone) isDone = snapshot.writeSlice(body, sliceBytes);
            run(choice);
          }
          while (!isDone) isDone = snapshot.writeSlice(body, sliceBytes + 1);

          const loaded = new Database(OPTIONS, QUIET);
          const reader = new SnapshotReader(loaded);
          for (let at = 0, end = 0; !reader.isComplete; ) {
            end = Math.min(end + pieceBytes, body.position);
            const read = reader.read(body.bytes, at, end);
            // One assertion for all pieces: there are thousands, and an `expect` for each would take most of the time.
            const isStuck = read === 0 && end === body.position;
            if (isStuck || reader.fault !== null) expect.fail(`stuck at ${reader.position}: ${reader.fault}`);
            at += read;
          }
          loaded.tree.lastZxid = snapshot.zxid;
          replay(loaded, log, snapshot.zxid);
          loaded.tree.acls.purgeUnused();
          expectSame(loaded, model);
          expect(loaded.tree.treeDigest()).toBe(database.tree.treeDigest());
        },
      ),
      { numRuns: 100 },
    );
  });
});
