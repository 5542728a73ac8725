import { type Acl, JuteWriter, makeZxid, OPEN_ACL, OpCode, READ_ACL, type Txn } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { SILENT_EVENTS } from './data-tree.ts';
import { Database } from './database.ts';
import { SnapshotReader } from './snapshot-reader.ts';
import { SnapshotWriter } from './snapshot-writer.ts';

const ANN: readonly Acl[] = [{ perms: 31, scheme: 'digest', id: 'ann:x' }];

function makeDatabase(extendedTypesEnabled = true, emulate353TtlZnodes = false): Database {
  return new Database({ extendedTypesEnabled, emulate353TtlZnodes, digestEnabled: true }, { emit() {} });
}

function apply(database: Database, counter: number, txn: Txn): void {
  database.apply({ sessionId: 5n, cxid: 1, zxid: makeZxid(0, counter), time: 1000 }, txn, SILENT_EVENTS);
}

function create(path: string, parentCversion: number, acl: readonly Acl[] = OPEN_ACL): Txn {
  return { type: OpCode.create, path, data: null, acl, isEphemeral: false, parentCversion };
}

function writeBody(snapshot: SnapshotWriter): Uint8Array {
  const writer = new JuteWriter();
  while (!snapshot.writeSlice(writer, 1000));
  return writer.toBytes();
}

function load(
  bytes: Uint8Array,
  extendedTypesEnabled = true,
  emulate353TtlZnodes = false,
): { database: Database; reader: SnapshotReader } {
  const database = makeDatabase(extendedTypesEnabled, emulate353TtlZnodes);
  const reader = new SnapshotReader(database);
  reader.read(bytes, 0, bytes.length);
  return { database, reader };
}

/** A body made by hand from hex fields; spaces are ignored. */
function body(...fields: (string | Buffer)[]): Uint8Array {
  return Buffer.concat(
    fields.map((field) => (typeof field === 'string' ? Buffer.from(field.replaceAll(' ', ''), 'hex') : field)),
  );
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

const NO_LISTS = '00000000 00000000';
const ROOT_RECORD = body(text(''), '00000000 ffffffffffffffff', '00'.repeat(60));
/** Data null, open ACL, and a stat of zeros with this owner. */
function znode(path: string, owner = '00'.repeat(8), czxid = '00'.repeat(8), acl = 'ff'.repeat(8)): Uint8Array {
  return body(text(path), 'ffffffff', acl, czxid, '00'.repeat(36), owner, '00'.repeat(8));
}
const END = body(text('/'));

describe('the writer', () => {
  it('writes byte by byte what the format says', () => {
    const database = makeDatabase();
    apply(database, 1, { type: OpCode.createSession, timeoutMs: 30_000 });
    apply(database, 2, {
      type: OpCode.create,
      path: '/e',
      data: new Uint8Array([0xaa]),
      acl: ANN,
      isEphemeral: true,
      parentCversion: 1,
    });
    const open = 'ffffffffffffffff';
    const expected = body(
      '00000001 0000000000000005 00007530',
      '00000003',
      // The configuration's, the ephemeral's, and the one that denies everyone access.
      '0000000000000001 00000001 00000001',
      ...[text('world'), text('anyone'), '0000000000000002 00000001 0000001f', text('digest'), text('ann:x')],
      ...['0000000000000003 00000001 00000000', text('world'), text('anyone')],
      ...[
        text(''),
        '00000000',
        open,
        '00'.repeat(32),
        '00000000 00000001 00000000',
        '00'.repeat(8),
        '0000000000000002',
      ],
      ...[text('/zookeeper'), '00000000', open, '00'.repeat(60)],
      ...[text('/zookeeper/quota'), '00000000', open, '00'.repeat(60)],
      ...[text('/zookeeper/config'), '00000000 0000000000000001', '00'.repeat(40), 'ffffffff', '00'.repeat(16)],
      ...[text('/e'), '00000001 aa 0000000000000002', '0000000000000002'.repeat(2), '00000000000003e8'.repeat(2)],
      '00000000 00000000 00000000 0000000000000005 0000000000000002',
      text('/'),
    );
    expect(Buffer.from(writeBody(new SnapshotWriter(database))).toString('hex')).toBe(
      Buffer.from(expected).toString('hex'),
    );
  });

  it('omits what was created after its zxid, and returns that zxid', () => {
    const database = makeDatabase();
    apply(database, 1, create('/old', 1));
    const snapshot = new SnapshotWriter(database);
    apply(database, 2, create('/new', 2));
    apply(database, 3, create('/old/new', 1));
    expect(snapshot.zxid).toBe(1);
    const { tree } = load(writeBody(snapshot)).database;
    expect(tree.znodes.find('/old')).toBeGreaterThan(0);
    expect([tree.znodes.find('/new'), tree.znodes.find('/old/new')]).toEqual([0, 0]);
  });

  it('writes parents first, also when their numbers are higher', () => {
    const database = makeDatabase();
    apply(database, 1, create('/first', 1));
    apply(database, 2, create('/parent', 2));
    apply(database, 3, { type: OpCode.delete, path: '/first' });
    // Reuses the number of /first, which is lower than its parent's.
    apply(database, 4, create('/parent/child', 1));
    expect(database.tree.znodes.find('/parent/child')).toBeLessThan(database.tree.znodes.find('/parent'));
    const { reader } = load(writeBody(new SnapshotWriter(database)));
    expect([reader.fault, reader.isComplete]).toEqual([null, true]);
  });

  it('denies everyone access where an ACL is newer than its list, until the log contains it', () => {
    const database = makeDatabase();
    apply(database, 1, create('/a', 1));
    const snapshot = new SnapshotWriter(database);
    const setAcl: Txn = { type: OpCode.setACL, path: '/a', acl: ANN, version: 1 };
    apply(database, 2, setAcl);
    const loaded = load(writeBody(snapshot)).database;
    const aclOf = (): readonly Acl[] => loaded.tree.acls.get(loaded.tree.znodes.aclOf(loaded.tree.znodes.find('/a')));
    expect(aclOf()).toEqual([{ perms: 0, scheme: 'world', id: 'anyone' }]);
    apply(loaded, 2, setAcl);
    expect(aclOf()).toEqual(ANN);
    expect(loaded.tree.treeDigest()).toBe(database.tree.treeDigest());
  });

  it('writes the sessions as they are when it is created', () => {
    const database = makeDatabase();
    apply(database, 1, { type: OpCode.createSession, timeoutMs: 4000 });
    const snapshot = new SnapshotWriter(database);
    apply(database, 2, { type: OpCode.closeSession, paths: [] });
    expect([...load(writeBody(snapshot)).database.sessions]).toEqual([[5n, 4000]]);
    expect(database.sessions.size).toBe(0);
  });

  it('contains an ephemeral deleted by a closeSession that does not list it: it raises the pzxid of its parent', () => {
    const database = makeDatabase();
    const ephemeral = (path: string, cversion: number): Txn =>
      ({ ...create(path, cversion), isEphemeral: true }) as Txn;
    for (const [i, path] of ['/p', '/q', '/r'].entries()) apply(database, i + 1, create(path, i + 1));
    const ephemerals = ['/p/listed', '/p/2', '/q/1', '/q/2', '/r/1'];
    for (const [i, path] of ephemerals.entries()) apply(database, i + 4, ephemeral(path, i + 1));
    const snapshot = new SnapshotWriter(database);
    const abandoned = new SnapshotWriter(database);
    const writer = new JuteWriter();
    while (!Buffer.from(writer.toBytes()).includes('/r')) snapshot.writeSlice(writer, 1);
    const closeSession: Txn = { type: OpCode.closeSession, paths: ['/p/listed'] };
    apply(database, 9, closeSession);
    while (!snapshot.writeSlice(writer, 1000));
    abandoned.release();
    expect(database.tree.state.openSnapshots.size).toBe(0);
    const loaded = load(writer.toBytes()).database;
    expect(ephemerals.map((path) => loaded.tree.znodes.find(path) !== 0)).toEqual([false, false, true, false, true]);
    apply(loaded, 9, closeSession);
    expect(loaded.tree.treeDigest()).toBe(database.tree.treeDigest());
  });

  it('ends a slice soon after its byte limit', () => {
    const database = makeDatabase();
    for (let i = 1; i <= 1000; i++) apply(database, i, create(`/znode-${i}`, i));
    const snapshot = new SnapshotWriter(database);
    let slices = 0;
    for (let isDone = false; !isDone; slices++) {
      const writer = new JuteWriter();
      isDone = snapshot.writeSlice(writer, 500);
      expect(writer.position).toBeLessThan(600);
    }
    expect(slices).toBeGreaterThan(150);
  });
});

describe('the reader', () => {
  it('stops after the body and does not read the rest', () => {
    const bytes = body(NO_LISTS, Buffer.from(ROOT_RECORD), Buffer.from(znode('/a')), Buffer.from(END), 'aabbcc');
    const database = makeDatabase();
    const reader = new SnapshotReader(database);
    expect(reader.read(bytes, 0, bytes.length)).toBe(bytes.length - 3);
    expect([reader.isComplete, reader.fault]).toEqual([true, null]);
    expect(reader.read(bytes, bytes.length - 3, bytes.length)).toBe(0);
    expect(database.tree.znodes.find('/a')).toBeGreaterThan(0);
  });

  it('recognizes TTL znodes of 3.5.3 where enabled, and keeps their owners', () => {
    const old = znode('/old', '8000000000002710');
    const large = znode('/large', '8123456789abcdef');
    const bytes = body(
      NO_LISTS,
      ...[ROOT_RECORD, znode('/ttl', 'ff00000000002710'), old, large].map((record) => Buffer.from(record)),
      ...[znode('/container', '8000000000000000'), znode('/mine', '7f00000000000001')].map((record) =>
        Buffer.from(record),
      ),
      Buffer.from(END),
    );
    const { tree } = load(bytes, true, true).database;
    const kindOf = (path: string): number => tree.znodes.kindOf(tree.znodes.find(path));
    expect(['/ttl', '/old', '/large', '/container', '/mine'].map(kindOf)).toEqual([3, 3, 3, 2, 1]);
    expect(['/ttl', '/old', '/large'].map((path) => tree.ttlOf(tree.znodes.find(path)))).toEqual([
      10_000, 10_000, 0x6789abcdef,
    ]);
    const owners = ['/old', '/large'].map((path) => BigInt.asUintN(64, tree.persistedOwnerOf(tree.znodes.find(path))));
    expect(owners).toEqual([0x8000000000002710n, 0x8123456789abcdefn]);
    const without = load(bytes).database.tree;
    expect(without.znodes.kindOf(without.znodes.find('/old'))).toBe(1);
  });

  it('denies access to a znode whose ACL is not in the list', () => {
    const record = Buffer.from(znode('/a', '00'.repeat(8), '00'.repeat(8), '0000000000000009'));
    const { tree } = load(body(NO_LISTS, Buffer.from(ROOT_RECORD), record, Buffer.from(END))).database;
    expect(tree.acls.get(tree.znodes.aclOf(tree.znodes.find('/a')))).toEqual([
      { perms: 0, scheme: 'world', id: 'anyone' },
    ]);
  });

  it('resolves each ACL by its number, even one with the number of the open list', () => {
    const listOf = (ip: string, number: string): Uint8Array => body(number, '00000001 0000001f', text('ip'), text(ip));
    const numbers = ['ff'.repeat(8), '0000000000000007', '0000000100000007'];
    const lists = ['::1', '::2', '::3'].map((ip, i) => Buffer.from(listOf(ip, numbers[i]!)));
    const used = [0, 1, 1, 2, 1, 0];
    const records = used.map((list, i) => Buffer.from(znode(`/${i}`, '00'.repeat(8), '00'.repeat(8), numbers[list])));
    const bytes = body('00000000 00000003', ...lists, Buffer.from(ROOT_RECORD), ...records, Buffer.from(END));
    const { tree } = load(bytes).database;
    const idOf = (i: number): string | null | undefined =>
      tree.acls.get(tree.znodes.aclOf(tree.znodes.find(`/${i}`)))[0]?.id;
    expect(used.map((_list, i) => idOf(i))).toEqual(used.map((list) => ['::1', '::2', '::3'][list]));
  });

  describe.each(['czxid', 'mzxid', 'pzxid'] as const)('takes as %s of a znode', (field) => {
    // czxid, mzxid, ctime, mtime, version, cversion, aversion, owner, pzxid; ZooKeeper: StatPersisted.
    const at = { czxid: 0, mzxid: 8, pzxid: 52 }[field];
    const loadWith = (zxid: string): { database: Database; reader: SnapshotReader } => {
      const stat = Buffer.alloc(60);
      stat.write(zxid, at, 'hex');
      const record = body(text('/a'), 'ffffffff', 'ff'.repeat(8), stat);
      return load(body(NO_LISTS, Buffer.from(ROOT_RECORD), Buffer.from(record), Buffer.from(END)));
    };

    it.each([
      ['0000000000000000', 0],
      ['00000001ffffffff', 0x1ffffffff],
      ['001fffffffffffff', 2 ** 53 - 1],
      ['ffffffffffffffff', -1],
    ])('0x%s', (zxid, value) => {
      const { database, reader } = loadWith(zxid);
      expect([reader.fault, reader.isComplete]).toEqual([null, true]);
      const { tree } = database;
      const z = tree.znodes.find('/a');
      expect({ czxid: tree.czxidOf(z), mzxid: tree.mzxidOf(z), pzxid: tree.pzxidOf(z) }[field]).toBe(value);
    });

    it.each(['0020000000000000', '7fffffffffffffff', '8000000000000000', 'fffffffffffffffe', 'fffffffeffffffff'])(
      'not 0x%s, which is no exact number or negative',
      (zxid) => {
        expect(loadWith(zxid).reader.fault).toContain('the znode /a has a zxid that is out of range');
      },
    );
  });

  it('drops ACLs that no znode uses', () => {
    const list = body('00000000 00000001', '0000000000000007 00000001 00000001', text('ip'), text('::1'));
    const { tree } = load(body(Buffer.from(list), Buffer.from(ROOT_RECORD), Buffer.from(END))).database;
    expect(tree.acls.entries().map(([, acl]) => acl)).toEqual([READ_ACL]);
  });

  it.each([
    ['a negative number of sessions', body('ffffffff'), 'the number of sessions is -1 (in the list of sessions)'],
    ['a negative number of ACLs', body('00000000 fffffffe'), 'the number of ACLs is -2 (in the list of ACLs)'],
    ['a path of negative length', body(NO_LISTS, 'ffffffff'), 'a path has the length -1 (before the first znode)'],
    [
      'data of impossible length',
      body(NO_LISTS, text('/a'), '7fffffff'),
      'data has the length 2147483647 (before the first znode)',
    ],
    [
      'a znode without parent',
      body(NO_LISTS, Buffer.from(znode('/a/b'))),
      'the znode /a/b has no parent (before the first znode)',
    ],
    [
      'a znode that comes twice',
      body(NO_LISTS, Buffer.from(znode('/a')), Buffer.from(znode('/a'))),
      'the znode /a is there twice (after 1 znodes, the last one /a)',
    ],
    [
      'a zxid beyond the exact numbers',
      body(NO_LISTS, Buffer.from(znode('/a', '00'.repeat(8), '0020000000000000'))),
      'the znode /a has a zxid that is out of range (before the first znode)',
    ],
    [
      'an owner of no kind',
      body(NO_LISTS, Buffer.from(znode('/a', 'ff00010000000001'))),
      'the znode /a has the owner 0xff00010000000001, which is invalid (before the first znode)',
    ],
  ])('reports what and where: %s', (_what, bytes, fault) => {
    const { reader } = load(bytes);
    expect(reader.fault).toBe(fault);
    expect(reader.isComplete).toBe(false);
    expect(reader.read(bytes, 0, bytes.length)).toBe(0);
  });

  it('waits at the end of every prefix of a body, and never considers it complete', () => {
    const whole = body(NO_LISTS, Buffer.from(ROOT_RECORD), Buffer.from(znode('/a')), Buffer.from(END));
    for (let length = 0; length < whole.length; length++) {
      const { reader } = load(whole.subarray(0, length));
      expect([length, reader.fault, reader.isComplete]).toEqual([length, null, false]);
    }
  });
});
