import { makeZxid, OPEN_ACL, OpCode, type PersistedStat } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { checkHistory } from './history.ts';
import { ClientScript, createRequest } from './testing/client-script.ts';

const QUOTA = '/zookeeper/quota/a';
const STAT: PersistedStat = {
  czxid: 0,
  mzxid: 0,
  ctime: 0,
  mtime: 0,
  version: 0,
  cversion: 0,
  aversion: 0,
  ephemeralOwner: 0n,
  pzxid: 0,
};

/** A quota of /a, with these limits, and /a with a child of three bytes. */
function scriptWith(limits: string): ClientScript {
  const script = new ClientScript();
  script.connect('c1');
  for (const [path, data] of [
    [QUOTA, ''],
    [`${QUOTA}/zookeeper_limits`, limits],
    [`${QUOTA}/zookeeper_stats`, 'count=0,bytes=0'],
    ['/a', ''],
    ['/a/b', 'xyz'],
  ] as const) {
    script.commit(script.create(path, { data }));
  }
  return script;
}

function brokenOf(script: ClientScript, enforcesQuota = true): string[] {
  const { history, committed, finalStates } = script;
  return checkHistory(history, committed, { finalStates, enforcesQuota }).map(({ invariant }) => invariant);
}

describe('W9: a write', () => {
  const refused = { code: 'QUOTAEXCEEDED', outcome: 'not-applied', failedPart: null } as const;

  it.each([
    ['is refused that exceeds the znodes of its quota', 'count=-1,bytes=-1=;countHardLimit=2', []],
    ['is refused that exceeds the bytes of its quota', 'count=-1,bytes=-1=;byteHardLimit=4', []],
    ['is refused though there is room', 'count=-1,bytes=-1=;byteHardLimit=5;countHardLimit=3', ['W9']],
    ['is refused for a soft limit', 'count=1,bytes=1', ['W9']],
  ])('%s', (_what, limits, broken) => {
    const script = scriptWith(limits);
    const error = { type: OpCode.error, error: -125 } as const;
    script.write('c1', createRequest('/a/c', 'xy'), error, { error: refused });
    expect(brokenOf(script)).toEqual(broken);
  });

  it.each([
    ['exceeds the znodes of its quota', 'count=-1,bytes=-1=;countHardLimit=2', ['W9']],
    ['exceeds the bytes of its quota', 'count=-1,bytes=-1=;byteHardLimit=4', ['W9']],
    ['exceeds a soft limit', 'count=1,bytes=1', []],
    ['has room', 'count=-1,bytes=-1=;byteHardLimit=5;countHardLimit=3', []],
  ])('goes through that %s', (_what, limits, broken) => {
    const script = scriptWith(limits);
    // What the leader had applied is known of the epochs before.
    const header = { sessionId: 0n, cxid: 0, zxid: makeZxid(2, 1), time: 5000 };
    const txn = {
      type: OpCode.create,
      path: '/a/c',
      data: new Uint8Array(2),
      acl: OPEN_ACL,
      isEphemeral: false,
    } as const;
    script.committed.push({ header, txn: { ...txn, parentCversion: 2 }, digest: null });
    expect(brokenOf(script)).toEqual(broken);
    expect(brokenOf(script, false)).toEqual([]);
  });
});

it.each([
  ['count=2,bytes=3', []],
  ['count=2,bytes=4', ['W9']],
  ['count=3,bytes=3', ['W9']],
])('W9: at rest a server says %s of a quota', (text, broken) => {
  const script = scriptWith('count=-1,bytes=-1');
  const znode = { path: `${QUOTA}/zookeeper_stats`, data: new TextEncoder().encode(text), stat: STAT };
  script.finalStates = [{ server: 1, lastZxid: script.lastZxid, treeDigest: 0n, znodes: [znode], sessions: null }];
  expect(brokenOf(script).filter((invariant) => invariant !== 'W6')).toEqual(broken);
});
