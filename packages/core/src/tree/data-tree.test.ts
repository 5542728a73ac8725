import {
  type Acl,
  type CreateTxn,
  ErrorCode,
  JuteReader,
  JuteWriter,
  type MultiSubTxn,
  makeZxid,
  OPEN_ACL,
  OpCode,
  READ_ACL,
  readStat,
  type Stat,
  type Txn,
} from '@meerkat/protocol';
import { describe, expect, it, vi } from 'vitest';
import { OPEN_ACL_ID } from './acl-table.ts';
import { type ApplyResult, DataTree, NO_ZNODE, SILENT_EVENTS, type TreeEvents, ZnodeKind } from './data-tree.ts';
import { DescendantCount } from './descendant-count.ts';
import { UNKNOWN_DIGEST } from './digest.ts';
import { TreeState } from './tree-state.ts';
import { ZnodeTable } from './znode-table.ts';

const QUIET = { emit() {} };
const ANN: readonly Acl[] = [{ perms: 31, scheme: 'digest', id: 'ann:x' }];

function makeTree(options: { extendedTypesEnabled?: boolean; digestEnabled?: boolean } = {}): DataTree {
  return new DataTree({ extendedTypesEnabled: true, digestEnabled: true, ...options }, QUIET);
}

/** Applies a txn of session 5 with this counter as zxid; the time is 1000 ms per zxid. */
function apply(tree: DataTree, counter: number, txn: Txn, events: TreeEvents = SILENT_EVENTS): ApplyResult {
  return tree.apply({ sessionId: 5n, cxid: 1, zxid: makeZxid(0, counter), time: counter * 1000 }, txn, events);
}

function create(path: string, parentCversion: number, rest: Partial<CreateTxn> = {}): CreateTxn {
  return { type: OpCode.create, path, data: null, acl: OPEN_ACL, isEphemeral: false, parentCversion, ...rest };
}

function remove(path: string): MultiSubTxn {
  return { type: OpCode.delete, path };
}

function statOf(tree: DataTree, path: string): Stat {
  const writer = new JuteWriter();
  tree.writeStat(tree.znodes.find(path), writer);
  return readStat(new JuteReader(writer.toBytes()));
}

function childrenOf(tree: DataTree, path: string): string[] {
  const writer = new JuteWriter();
  tree.writeChildren(tree.znodes.find(path), writer);
  const reader = new JuteReader(writer.toBytes());
  return Array.from({ length: reader.int() }, () => reader.ustring()!);
}

describe('a fresh tree', () => {
  const tree = makeTree();

  it('has four system znodes, counts the root twice and has the size and digest that Apache has', () => {
    expect(tree.count).toBe(5);
    expect(tree.approximateDataSize).toBe(44);
    expect(tree.treeDigest()).toBe(1371985504n);
    expect(childrenOf(tree, '/')).toEqual(['zookeeper']);
    expect(childrenOf(tree, '/zookeeper').sort()).toEqual(['config', 'quota']);
    expect(tree.descendantCount).toBe(3);
    const count = new DescendantCount(tree.state, tree.znodes.find('/zookeeper'), tree.lastZxid);
    expect(count.advance(10)).toBe(true);
    expect(count.count).toBe(2);
  });

  it('lets everyone read the configuration and no one write it', () => {
    const config = tree.znodes.find('/zookeeper/config');
    expect(tree.acls.get(tree.znodes.aclOf(config))).toEqual(READ_ACL);
    expect(statOf(tree, '/zookeeper/config')).toMatchObject({ version: 0, aversion: -1, dataLength: 0, czxid: 0 });
    expect(tree.znodes.aclOf(tree.znodes.find('/zookeeper'))).toBe(OPEN_ACL_ID);
  });

  it('finds the root under both of its names, and nothing under an invalid path', () => {
    expect(tree.znodes.find('')).toBe(tree.znodes.find('/'));
    for (const path of ['//', '/zookeeper/', 'zookeeper', '/a']) expect(tree.znodes.find(path)).toBe(0);
    for (const path of ['', '/', 'a', '//a', '/a/b']) expect(tree.findParent(path)).toBe(0);
    expect(tree.findParent('/a')).toBe(tree.znodes.find('/'));
  });
});

describe('create', () => {
  it('counts in the parent, whose cversion on the wire is twice the count minus the number of children', () => {
    const tree = makeTree();
    apply(tree, 1, create('/a', 1));
    apply(tree, 2, create('/a/x', 1));
    apply(tree, 3, create('/a/y', 2));
    apply(tree, 4, remove('/a/x'));
    expect(tree.znodes.sequenceOf(tree.znodes.find('/a'))).toBe(2);
    expect(statOf(tree, '/a')).toMatchObject({ cversion: 3, numChildren: 1, pzxid: 4, mzxid: 1, version: 0 });
  });

  it('continues beyond 2**31 children, where a signed count would get stuck', () => {
    const tree = makeTree();
    apply(tree, 1, create('/a', 2 ** 31 - 1));
    apply(tree, 2, create('/b', -(2 ** 31)));
    expect(tree.znodes.sequenceOf(tree.znodes.find('/'))).toBe(2 ** 31);
    apply(tree, 3, create('/c', -2));
    expect(tree.znodes.sequenceOf(tree.znodes.find('/'))).toBe(2 ** 32 - 2);
    // A late replay does not lower the count.
    apply(tree, 4, create('/d', 2 ** 31 - 1));
    expect(tree.znodes.sequenceOf(tree.znodes.find('/'))).toBe(2 ** 32 - 2);
    expect(statOf(tree, '/').cversion).toBe(-4 - 5);
  });

  it('increments the count when an old log does not contain it', () => {
    const tree = makeTree();
    apply(tree, 1, create('/a', -1));
    apply(tree, 2, create('/b', -1));
    expect(tree.znodes.sequenceOf(tree.znodes.find('/'))).toBe(2);
  });

  it('of an existing znode still raises the count of the parent, and sets the ACL of the txn', () => {
    const tree = makeTree();
    apply(tree, 1, create('/a', 1, { data: new Uint8Array([1]) }));
    const result = apply(tree, 7, create('/a', 3, { acl: ANN, data: new Uint8Array([2]) }));
    expect(result.error).toBe(ErrorCode.nodeExists);
    expect(tree.acls.get(tree.znodes.aclOf(tree.znodes.find('/a')))).toEqual(ANN);
    expect([...tree.dataOf(tree.znodes.find('/a'))!]).toEqual([1]);
    expect(tree.znodes.sequenceOf(tree.znodes.find('/'))).toBe(3);
    expect(tree.pzxidOf(tree.znodes.find('/'))).toBe(7);
    expect(tree.lastZxid).toBe(7);
  });

  it('below a missing parent does nothing', () => {
    const tree = makeTree();
    expect(apply(tree, 1, create('/a/b', 1)).error).toBe(ErrorCode.noNode);
    expect(apply(tree, 2, create('/', 1)).error).toBe(ErrorCode.nodeExists);
    expect(tree.count).toBe(5);
  });

  it('keeps null and empty data apart', () => {
    const tree = makeTree();
    const none = apply(tree, 1, create('/none', 1)).znode;
    const empty = apply(tree, 2, create('/empty', 2, { data: new Uint8Array(0) })).znode;
    expect(tree.dataOf(none)).toBeNull();
    expect(tree.dataOf(empty)).toEqual(new Uint8Array(0));
    expect([tree.dataLengthOf(none), tree.dataLengthOf(empty)]).toEqual([0, 0]);
  });
});

describe('kinds of znodes', () => {
  it('show clients the owner of an ephemeral and of nothing else', () => {
    const tree = makeTree();
    apply(tree, 1, create('/e', 1, { isEphemeral: true }));
    apply(tree, 2, { type: OpCode.createContainer, path: '/c', data: null, acl: OPEN_ACL, parentCversion: 2 });
    apply(tree, 3, { type: OpCode.createTTL, path: '/t', data: null, acl: OPEN_ACL, parentCversion: 3, ttl: 5000 });
    const owners = ['/e', '/c', '/t'].map((path) => statOf(tree, path).ephemeralOwner);
    expect(owners).toEqual([5n, 0n, 0n]);
    const persisted = ['/e', '/c', '/t'].map((path) =>
      BigInt.asUintN(64, tree.persistedOwnerOf(tree.znodes.find(path))),
    );
    expect(persisted).toEqual([5n, 0x8000000000000000n, 0xff00000000001388n]);
    expect(['/e', '/c', '/t'].map((path) => tree.znodes.kindOf(tree.znodes.find(path)))).toEqual([
      ZnodeKind.ephemeral,
      ZnodeKind.container,
      ZnodeKind.ttl,
    ]);
    expect(tree.ttlOf(tree.znodes.find('/t'))).toBe(5000);
    expect(tree.ephemeralCount).toBe(1);
  });

  it('treat a TTL znode as the ephemeral of an unknown session where extended types are off', () => {
    const tree = makeTree({ extendedTypesEnabled: false });
    apply(tree, 1, { type: OpCode.createTTL, path: '/t', data: null, acl: OPEN_ACL, parentCversion: 1, ttl: 5000 });
    const [stranger] = [...tree.sessionsWithEphemerals()];
    expect(BigInt.asUintN(64, stranger!)).toBe(0xff00000000001388n);
    expect(tree.ephemeralsOf(stranger!)).toEqual(['/t']);
  });

  it('become collectable: containers that had children, and unused ones and TTL znodes after their time', () => {
    const tree = makeTree();
    const collectable = (wallMs: number, neverUsedMs: number): (string | null)[] =>
      [...tree.collectablePaths(wallMs, neverUsedMs)].filter((path) => path !== null);
    apply(tree, 1, { type: OpCode.createContainer, path: '/used', data: null, acl: OPEN_ACL, parentCversion: 1 });
    apply(tree, 2, create('/used/x', 1));
    apply(tree, 3, { type: OpCode.createContainer, path: '/new', data: null, acl: OPEN_ACL, parentCversion: 2 });
    apply(tree, 4, { type: OpCode.createTTL, path: '/ttl', data: null, acl: OPEN_ACL, parentCversion: 3, ttl: 500 });
    expect(collectable(4500, 0)).toEqual([]);
    apply(tree, 5, remove('/used/x'));
    expect(collectable(4501, 0)).toEqual(['/used', '/ttl']);
    expect(collectable(4501, 1500)).toEqual(['/used', '/new', '/ttl']);
    apply(tree, 6, { type: OpCode.setData, path: '/ttl', data: null, version: 1 });
    expect(collectable(6500, 0)).toEqual(['/used']);
    apply(tree, 7, { type: OpCode.deleteContainer, path: '/used' });
    apply(tree, 8, remove('/ttl'));
    expect(collectable(1e9, 0)).toEqual([]);
  });
});

describe('delete', () => {
  it('of a missing znode still raises the pzxid of its parent, and never lowers it', () => {
    const tree = makeTree();
    apply(tree, 5, create('/a', 1));
    expect(apply(tree, 7, remove('/gone')).error).toBe(ErrorCode.noNode);
    expect(tree.pzxidOf(tree.znodes.find('/'))).toBe(7);
    apply(tree, 3, remove('/gone'));
    expect(tree.pzxidOf(tree.znodes.find('/'))).toBe(7);
    expect(tree.lastZxid).toBe(7);
  });

  it('also deletes children that a later part of the log has created', () => {
    const tree = makeTree();
    apply(tree, 1, create('/a', 1));
    apply(tree, 2, create('/a/b', 1));
    apply(tree, 3, create('/a/b/c', 1, { isEphemeral: true }));
    apply(tree, 4, remove('/a'));
    expect(tree.count).toBe(5);
    expect(tree.ephemeralCount).toBe(0);
    expect(tree.approximateDataSize).toBe(44);
  });

  it('reports the ACLs as they were, even if no other znode uses that list', () => {
    const tree = makeTree();
    apply(tree, 1, create('/a', 1, { acl: READ_ACL }));
    apply(tree, 2, create('/a/b', 1, { acl: ANN }));
    const triggered: unknown[] = [];
    apply(tree, 3, remove('/a/b'), {
      ...SILENT_EVENTS,
      onDeleted: (path, aclId, parentPath, parentAclId, zxid) =>
        triggered.push(path, tree.acls.get(aclId), parentPath, tree.acls.get(parentAclId), zxid),
    });
    expect(triggered).toEqual(['/a/b', ANN, '/a', READ_ACL, 3]);
    expect(tree.acls.size).toBe(1);
  });
});

describe('setACL', () => {
  it('changes aversion and digest, but no time and no other version', () => {
    const tree = makeTree();
    apply(tree, 1, create('/a', 1));
    const before = { stat: statOf(tree, '/a'), digest: tree.treeDigest() };
    apply(tree, 2, { type: OpCode.setACL, path: '/a', acl: ANN, version: 1 });
    expect(statOf(tree, '/a')).toEqual({ ...before.stat, aversion: 1 });
    expect(tree.treeDigest()).not.toBe(before.digest);
  });
});

describe('multi', () => {
  it('returns the stat as of each part', () => {
    const tree = makeTree();
    const { error, parts } = apply(tree, 1, {
      type: OpCode.multi,
      txns: [
        create('/a', 1, { type: OpCode.create2 }),
        create('/a/b', 1),
        { type: OpCode.setData, path: '/a', data: new Uint8Array(3), version: 1 },
        { type: OpCode.check, path: '/a', version: 2 },
        remove('/a/b'),
      ],
    });
    expect(error).toBe(ErrorCode.ok);
    const stats = parts!.map(({ stat }) => (stat === null ? null : readStat(new JuteReader(stat))));
    expect(stats[0]).toMatchObject({ version: 0, numChildren: 0, dataLength: 0 });
    expect(stats[2]).toMatchObject({ version: 1, numChildren: 1, dataLength: 3 });
    expect(parts!.map(({ type, path, stat }) => [type, path, stat === null])).toEqual([
      [OpCode.create2, '/a', false],
      [OpCode.create, '/a/b', false],
      [OpCode.setData, '/a', false],
      [OpCode.check, '/a', true],
      [OpCode.delete, '/a/b', true],
    ]);
  });

  it.each([31, 32, 33, 200, 1023, 1024, 5000])('returns the stat of a part after %i parts without one', (before) => {
    const tree = makeTree();
    const check: MultiSubTxn = { type: OpCode.check, path: '/', version: 1 };
    const txns = [...Array.from({ length: before }, () => check), create('/a', 1, { data: new Uint8Array(3) })];
    const { parts } = apply(tree, 1, { type: OpCode.multi, txns });
    const stat = readStat(new JuteReader(parts!.at(-1)!.stat!));
    expect(stat).toMatchObject({ czxid: 1, dataLength: 3 });
  });

  it('with an error changes nothing: earlier parts are ok, later parts inconsistent', () => {
    const tree = makeTree();
    const failed: MultiSubTxn = { type: OpCode.error, error: ErrorCode.noNode };
    const later: MultiSubTxn = { type: OpCode.error, error: ErrorCode.runtimeInconsistency };
    const { error, parts } = apply(tree, 9, {
      type: OpCode.multi,
      txns: [create('/a', 1), failed, create('/b', 2), later],
    });
    expect(error).toBe(ErrorCode.noNode);
    expect(parts!.map((part) => [part.type, part.error])).toEqual([
      [OpCode.error, 0],
      [OpCode.error, -101],
      [OpCode.error, -2],
      [OpCode.error, -2],
    ]);
    expect(tree.count).toBe(5);
    expect(tree.lastZxid).toBe(9);
  });
});

describe('a change that was prepared when another znode had the number', () => {
  const setData = (path: string): Txn => ({ type: OpCode.setData, path, data: Uint8Array.of(1), version: 1 });

  it.each(['setData', 'delete'])('is made at its path: %s', (kind) => {
    const tree = makeTree();
    apply(tree, 1, create('/a', 1));
    const znode = tree.znodes.find('/a');
    apply(tree, 2, remove('/a'));
    const header = { sessionId: 5n, cxid: 1, zxid: makeZxid(0, 9), time: 9000 };
    const prepared = { digest: UNKNOWN_DIGEST, znode, parts: null };
    const change = (path: string): Txn => (kind === 'setData' ? setData(path) : remove(path));
    // The number is free, then used for another path, then for the same one.
    expect(tree.apply(header, change('/a'), SILENT_EVENTS, prepared).error).toBe(ErrorCode.noNode);
    apply(tree, 3, create('/b', 2));
    expect(tree.znodes.find('/b')).toBe(znode);
    expect(tree.apply(header, change('/a'), SILENT_EVENTS, prepared).error).toBe(ErrorCode.noNode);
    apply(tree, 4, create('/a', 3));
    tree.apply(header, change('/a'), SILENT_EVENTS, prepared);
    expect(statOf(tree, '/b')).toMatchObject({ version: 0, dataLength: 0 });
    if (kind === 'setData') expect(statOf(tree, '/a')).toMatchObject({ version: 1, dataLength: 1 });
    else expect(tree.znodes.find('/a')).toBe(NO_ZNODE);
    tree.apply(header, change('/b'), SILENT_EVENTS, prepared);
    expect(tree.znodes.find('/b') === NO_ZNODE || statOf(tree, '/b').version === 1).toBe(true);
  });
});

it('keeps the membership that a reconfig has replaced, whatever is written afterwards', () => {
  const tree = makeTree();
  const [before, after] = [3, 4].map((byte) => new Uint8Array(200).fill(byte)) as [Uint8Array, Uint8Array];
  const reconfig = (data: Uint8Array): Txn => ({ type: OpCode.reconfig, path: '/zookeeper/config', data, version: -1 });
  apply(tree, 1, reconfig(before));
  apply(tree, 2, reconfig(after));
  for (let i = 3; i < 300; i++) apply(tree, i, create(`/${i}`, i, { data: new Uint8Array(200).fill(9) }));
  expect(tree.replacedMembership).toEqual(before);
});

describe('the digest', () => {
  it('is recorded for every 128th zxid, the last 1024 of them', () => {
    const tree = makeTree();
    for (let counter = 1; counter <= 128 * 1030; counter++) {
      apply(tree, counter, { type: OpCode.error, error: -101 });
    }
    const history = tree.digestHistory();
    expect(history.length).toBe(1024);
    expect(history[0]).toEqual({ zxid: 128 * 7, digest: 1371985504n });
    expect(history.at(-1)!.zxid).toBe(128 * 1030);
  });

  it('is not recorded while the tree may be ahead of its zxid, after loading a fuzzy snapshot', () => {
    const tree = makeTree();
    tree.exactFrom = 300;
    for (let counter = 1; counter <= 400; counter++) apply(tree, counter, { type: OpCode.error, error: -101 });
    expect(tree.digestHistory().map(({ zxid }) => zxid)).toEqual([384]);
  });

  it('is 0 where digests are off', () => {
    const tree = makeTree({ digestEnabled: false });
    const { znode } = apply(tree, 128, create('/a', 1));
    apply(tree, 129, { type: OpCode.setACL, path: '/a', acl: ANN, version: 1 });
    expect(tree.treeDigest()).toBe(0n);
    expect(tree.znodes.digestOf(znode)).toBe(0);
    expect(tree.digestHistory()).toEqual([]);
  });
});

describe('replies', () => {
  it('name children of the root and of others, ASCII or not, in the order of their creation', () => {
    const tree = makeTree();
    apply(tree, 1, create('/b', 1));
    apply(tree, 2, create('/ä', 2));
    apply(tree, 3, create('/b/東京', 1));
    apply(tree, 4, create('/b/x', 2));
    expect(childrenOf(tree, '/')).toEqual(['zookeeper', 'b', 'ä']);
    expect(childrenOf(tree, '/b')).toEqual(['東京', 'x']);
    expect(childrenOf(tree, '/ä')).toEqual([]);
    expect(tree.nameOf(tree.znodes.find('/b/東京'))).toBe('東京');
  });
});

describe('the end of a session', () => {
  const EPHEMERAL = { isEphemeral: true };

  it('looks up none of its ephemerals: they are listed in the order of ownership', () => {
    const tree = makeTree();
    apply(tree, 1, create('/p', 1));
    const paths = Array.from({ length: 100 }, (_, i) => `/p/e${i}`);
    for (const [i, path] of paths.entries()) apply(tree, 2 + i, create(path, 1 + i, EPHEMERAL));
    const find = vi.spyOn(ZnodeTable.prototype, 'findByHash');
    const findParent = vi.spyOn(TreeState.prototype, 'findParent');
    apply(tree, 200, { type: OpCode.closeSession, paths });
    expect(find).not.toHaveBeenCalled();
    expect(findParent).not.toHaveBeenCalled();
    vi.restoreAllMocks();
    expect(childrenOf(tree, '/p')).toEqual([]);
    expect(tree.ephemeralCount).toBe(0);
  });

  it('deletes listed and unlisted ephemerals, in any order, and none of another session', () => {
    const tree = makeTree();
    const events: string[] = [];
    for (const [i, path] of ['/a', '/b', '/c', '/d'].entries()) apply(tree, 1 + i, create(path, 1 + i, EPHEMERAL));
    const other = { sessionId: 6n, cxid: 1, zxid: makeZxid(0, 9), time: 9000 };
    tree.apply(other, create('/other', 5, EPHEMERAL), SILENT_EVENTS);
    const onDeleted = (path: string) => events.push(path);
    apply(tree, 10, { type: OpCode.closeSession, paths: ['/c', '/gone', '/a'] }, { ...SILENT_EVENTS, onDeleted });
    expect(events).toEqual(['/c', '/a', '/b', '/d']);
    expect(childrenOf(tree, '/')).toEqual(['zookeeper', 'other']);
    expect([tree.ephemeralCountOf(5n), tree.ephemeralCountOf(6n)]).toEqual([0, 1]);
    apply(tree, 11, create('/a', 6, EPHEMERAL));
    expect(tree.ephemeralsOf(5n)).toEqual(['/a']);
  });
});
