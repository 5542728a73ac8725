import { makeZxid, OPEN_ACL, OpCode, Perm, type Txn } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { type CommittedBase, CommittedTree } from './committed-tree.ts';
import type { FinalState, FinalZnode } from './final-rules.ts';
import { foldCommitted } from './history.ts';
import { ClientScript, deleteTxn, setTxn } from './testing/client-script.ts';
import { statOf } from './znode-state.ts';

const SESSION = 0x77n;
const [z1, z2, z3, z4, z5] = [makeZxid(1, 1), makeZxid(1, 2), makeZxid(1, 3), makeZxid(1, 4), makeZxid(1, 5)];

describe('the tree of the committed txns', () => {
  it('has the stats of the table in the manual', () => {
    const script = new ClientScript();
    for (const txn of [
      script.create('/a', { data: 'abc' }),
      script.create('/a/b'),
      setTxn('/a', 'defg', 1),
      { type: OpCode.setACL, path: '/a', acl: OPEN_ACL, version: 1 } as const,
      deleteTxn('/a/b'),
    ]) {
      script.commit(txn);
    }
    const { tree } = script;
    expect(statOf(tree.stateAt('/a', z5)!)).toEqual({
      czxid: z1,
      mzxid: z3,
      ctime: 1000,
      mtime: 1002,
      version: 1,
      // One create counts twice, less the children that are there.
      cversion: 2,
      aversion: 1,
      ephemeralOwner: 0n,
      dataLength: 4,
      numChildren: 0,
      pzxid: z5,
    });
    expect(statOf(tree.stateAt('/a', z2)!)).toMatchObject({ mzxid: z1, pzxid: z2, cversion: 1, numChildren: 1 });
    expect(tree.stateAt('/a', 0)).toBeNull();
    expect(tree.stateAt('/a/b', z5)).toBeNull();
    expect(tree.childrenAt('/a', z4)).toEqual(['b']);
    expect(tree.childrenAt('/', z5)).toEqual(['a', 'zookeeper']);
  });

  it('takes a multi as one, and one that was refused as nothing', () => {
    const script = new ClientScript();
    const error = { type: OpCode.error, error: -101 } as const;
    script.commit({ type: OpCode.multi, txns: [script.create('/a'), setTxn('/a', 'x', 1)] });
    script.commit({ type: OpCode.multi, txns: [{ ...script.create('/b'), parentCversion: 2 }, error] });
    expect(script.tree.stateAt('/a', z1)).toMatchObject({ version: 1, czxid: z1, mzxid: z1 });
    expect(script.tree.stateAt('/b', z2)).toBeNull();
  });

  it('knows the permissions inside a multi, of a state that cannot be read', () => {
    const script = new ClientScript();
    const noRead = [{ perms: Perm.write, scheme: 'world', id: 'anyone' }];
    script.commit(script.create('/a'));
    script.commit({
      type: OpCode.multi,
      txns: [deleteTxn('/a'), { ...script.create('/a'), acl: noRead }, deleteTxn('/a'), script.create('/a')],
    });
    script.commit(setTxn('/a', 'x', 1));
    expect(script.tree.stateAt('/a', z2)).toMatchObject({ acl: OPEN_ACL });
    expect(script.tree.aclsBetween('/a', z1, z2)).toContainEqual(noRead);
    expect(script.tree.aclsBetween('/a', 0, z1)).not.toContainEqual(noRead);
    expect(script.tree.aclsBetween('/a', z2, z3)).not.toContainEqual(noRead);
  });

  function faultsOf(build: (script: ClientScript) => void): string[] {
    const script = new ClientScript();
    build(script);
    return script.broken;
  }

  describe('W8: a znode is collected', () => {
    const collect: Txn = { type: OpCode.deleteContainer, path: '/a' };
    const { acl, data, parentCversion } = { acl: OPEN_ACL, data: null, parentCversion: 1 };
    const container: Txn = { type: OpCode.createContainer, path: '/a', acl, data, parentCversion };
    // Each txn of a script is a millisecond later.
    const ttl = (ms: number): Txn => ({ type: OpCode.createTTL, path: '/a', acl, data, parentCversion, ttl: ms });
    const child = { type: OpCode.create, path: '/a/b', data, acl, isEphemeral: false, parentCversion: 1 } as const;

    it.each([
      ['that is a container and had a child', [container, child, deleteTxn('/a/b'), collect], []],
      ['whose time to live is over', [ttl(1), setTxn('/', '', 1), collect], []],
      ['that is a container and never had a child', [container, collect], ['W8']],
      ['whose time to live is not over', [ttl(2), setTxn('/', '', 1), collect], ['W8']],
      ['that is neither', [{ ...child, path: '/a' }, collect], ['W8']],
      ['that has a child', [container, child, collect], ['W6']],
    ] as const)('%s', (_what, txns, broken) => {
      expect(faultsOf((script) => txns.forEach((txn) => void script.commit(txn)))).toEqual(broken);
    });
  });

  const timeout: Txn = { type: OpCode.createSession, timeoutMs: 4000 };

  it.each([
    ['creates a znode that exists', (script: ClientScript) => [script.create('/a'), script.create('/a')]],
    ['creates a znode without its parent', (script: ClientScript) => [script.create('/a/b')]],
    ['deletes a znode that does not exist', () => [deleteTxn('/a')]],
    [
      'deletes a znode with children',
      (script: ClientScript) => [script.create('/a'), script.create('/a/b'), deleteTxn('/a')],
    ],
    ['leaves out a version', (script: ClientScript) => [script.create('/a'), setTxn('/a', '', 2)]],
    [
      'leaves out an aversion',
      (script: ClientScript) => [
        script.create('/a'),
        { type: OpCode.setACL, path: '/a', acl: OPEN_ACL, version: 2 } as const,
      ],
    ],
  ] as const)('W6: a txn %s', (_what, txns) => {
    expect(faultsOf((script) => txns(script).forEach((txn) => void script.commit(txn)))).toEqual(['W6']);
  });

  it('S3: an ephemeral belongs to a session that has ended', () => {
    const broken = faultsOf((script) => {
      script.commit(timeout, SESSION);
      script.commit({ type: OpCode.closeSession, paths: [] }, SESSION);
      script.commit(script.create('/a', { isEphemeral: true }), SESSION);
    });
    expect(broken).toEqual(['S3']);
  });

  it('S3: the end of a session leaves an ephemeral', () => {
    const broken = faultsOf((script) => {
      script.commit(timeout, SESSION);
      script.commit(script.create('/a', { isEphemeral: true }), SESSION);
      script.commit({ type: OpCode.closeSession, paths: [] }, SESSION);
    });
    expect(broken).toEqual(['S3']);
  });

  describe('the end of a session with more ephemerals than a txn can list', () => {
    const paths = ['/p/1', '/p/2', '/q/1', '/r/1'];
    /** A closeSession takes 48 bytes, and 8 for each of these paths. */
    function faultsOfList(listed: readonly string[], txnBytesMax: number): string[] {
      const script = new ClientScript();
      for (const path of ['/p', '/q', '/r']) script.commit(script.create(path));
      script.commit(timeout, SESSION);
      for (const path of paths) script.commit(script.create(path, { isEphemeral: true }), SESSION);
      script.commit({ type: OpCode.closeSession, paths: listed }, SESSION);
      const faults: string[] = [];
      const tree = new CommittedTree(
        script.committed,
        (invariant) => void faults.push(invariant),
        undefined,
        txnBytesMax,
      );
      expect(paths.filter((path) => tree.stateAt(path, script.lastZxid) !== null)).toEqual([]);
      return faults;
    }

    it('names one of each parent, as far as they fit', () => {
      expect(faultsOfList(['/p/1', '/q/1', '/r/1'], 48 + 31)).toEqual([]);
      expect(faultsOfList(['/p/2', '/r/1'], 48 + 23)).toEqual([]);
    });

    it('D11: leaves out a parent though there is room', () => {
      expect(faultsOfList(['/p/1', '/p/2', '/q/1'], 48 + 31)).toEqual([]);
      expect(faultsOfList(['/p/1', '/q/1'], 48 + 31)).toEqual(['D11']);
    });

    it('S3: lists some only, though all would fit', () => {
      expect(faultsOfList(['/p/1', '/q/1', '/r/1'], 48 + 32)).toEqual(['S3']);
      expect(faultsOfList(paths, 48 + 32)).toEqual([]);
    });
  });

  it('S3: the end of a session takes what is not its own', () => {
    const broken = faultsOf((script) => {
      script.commit(timeout, SESSION);
      script.commit(script.create('/a'));
      script.commit({ type: OpCode.closeSession, paths: ['/a'] }, SESSION);
    });
    expect(broken).toEqual(['S3']);
  });

  it('an ephemeral lives as long as its session', () => {
    const script = new ClientScript();
    script.commit(timeout, SESSION);
    script.commit(script.create('/a', { isEphemeral: true }), SESSION);
    script.commit({ type: OpCode.closeSession, paths: ['/a'] }, SESSION);
    expect(script.broken).toEqual([]);
    expect(script.tree.stateAt('/a', z2)?.owner).toBe(SESSION);
    expect(script.tree.stateAt('/a', z3)).toBeNull();
    expect(script.tree.sessions.get(SESSION)).toMatchObject({ createdZxid: z1, closedZxid: z3 });
  });
});

describe('a tree that follows another one', () => {
  const script = new ClientScript();
  for (const txn of [script.create('/a', { data: 'x' }), script.create('/b')]) script.commit(txn);
  script.commit({ type: OpCode.createSession, timeoutMs: 4000 }, SESSION);
  script.commit(script.create('/a/e', { isEphemeral: true }), SESSION);
  script.commit(deleteTxn('/b'));
  script.commit({ type: OpCode.closeSession, paths: ['/a/e'] }, SESSION);
  script.commit(setTxn('/a', 'y', 1));
  const { committed } = script;

  function follow(base: CommittedBase, at: number): string[] {
    const faults: string[] = [];
    new CommittedTree(committed.slice(at), (invariant, message) => faults.push(`${invariant} ${message}`), base);
    return faults;
  }

  it('continues as if it had all of the history', () => {
    for (let at = 0; at <= committed.length; at++) {
      const base = foldCommitted(committed.slice(0, at));
      expect(base.zxid).toBe(at === 0 ? 0 : makeZxid(1, at));
      expect(follow(base, at)).toEqual([]);
      expect(foldCommitted(committed.slice(at), base)).toEqual(foldCommitted(committed));
      const tree = new CommittedTree(committed.slice(at), () => {}, base);
      expect(tree.stateAt('/a', script.lastZxid)).toEqual(script.tree.stateAt('/a', script.lastZxid));
      expect(tree.childrenAt('/', script.lastZxid)).toEqual(['a', 'zookeeper']);
    }
  });

  it('shows that a txn between the two is missing', () => {
    expect(follow(foldCommitted(committed.slice(0, 3)), 4)).toEqual([
      expect.stringMatching(/^S3 0x100000006 ends session 0x77 and deletes \/a\/e/),
    ]);
    expect(follow(foldCommitted(committed.slice(0, 1)), 2)).toEqual([expect.stringMatching(/^W6 .* deletes \/b/)]);
  });
});

describe('what servers hold at the end', () => {
  function ended(): { script: ClientScript; znodes: FinalZnode[]; state: FinalState } {
    const script = new ClientScript();
    script.commit({ type: OpCode.createSession, timeoutMs: 4000 }, SESSION);
    script.commit(script.create('/a', { data: 'x' }));
    const tree = new CommittedTree(script.committed, () => {});
    const znodes = ['/', '/a'].map((path): FinalZnode => {
      const { owner, data, ...stat } = tree.stateAt(path, script.lastZxid)!;
      return { path, data, stat: { ...stat, ephemeralOwner: owner } };
    });
    const sessions = new Map([[SESSION, 4000]]);
    return { script, znodes, state: { server: 1, lastZxid: script.lastZxid, treeDigest: 5n, znodes, sessions } };
  }

  it('is what was committed', () => {
    const { script, state } = ended();
    script.finalStates = [state, { ...state, server: 2 }];
    expect(script.violations).toEqual([]);
  });

  it('L2: a server does not come to the end', () => {
    const { script, state } = ended();
    script.finalStates = [{ ...state, lastZxid: z1, znodes: null }];
    expect(script.broken).toEqual(['L2']);
  });

  it('Z17: two servers remember other digests of one zxid', () => {
    const { script, state } = ended();
    const digests = (digest: bigint) => [
      { zxid: 128, digest: 5n },
      { zxid: 256, digest },
    ];
    script.finalStates = [
      { ...state, digests: digests(6n) },
      { ...state, server: 2, digests: digests(6n).slice(1) },
    ];
    expect(script.broken).toEqual([]);
    script.finalStates = [
      { ...state, digests: digests(6n) },
      { ...state, server: 2, digests: digests(7n).slice(1) },
    ];
    expect(script.broken).toEqual(['Z17']);
  });

  it('L2: two servers end with other trees', () => {
    const { script, state } = ended();
    script.finalStates = [state, { ...state, server: 2, treeDigest: 6n }];
    expect(script.broken).toEqual(['L2']);
  });

  it('W6: a server has another stat', () => {
    const { script, state, znodes } = ended();
    const [root, a] = znodes;
    script.finalStates = [{ ...state, znodes: [root!, { ...a!, stat: { ...a!.stat, pzxid: 7 } }] }];
    expect(script.broken).toEqual(['W6']);
  });

  it('W6: a server has other data', () => {
    const { script, state, znodes } = ended();
    const [root, a] = znodes;
    script.finalStates = [{ ...state, znodes: [root!, { ...a!, data: Uint8Array.of(1) }] }];
    expect(script.broken).toEqual(['W6']);
  });

  it('W6: a server lacks a znode, or has one too many', () => {
    const { script, state, znodes } = ended();
    script.finalStates = [{ ...state, znodes: znodes.slice(0, 1) }];
    expect(script.broken).toEqual(['W6']);
    script.finalStates = [{ ...state, znodes: [...znodes, { ...znodes[1]!, path: '/b' }] }];
    expect(script.broken).toEqual(['W6']);
  });

  it('S6: a server has lost a session, or kept one', () => {
    const { script, state } = ended();
    script.finalStates = [{ ...state, sessions: new Map() }];
    expect(script.broken).toEqual(['S6']);
    script.finalStates = [{ ...state, sessions: new Map([...state.sessions!, [0x99n, 4000]]) }];
    expect(script.broken).toEqual(['S6']);
  });
});
