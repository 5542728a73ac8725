import { makeProposal, makeZxid, OpCode, PacketType, type Txn, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { bodyHash } from './body-hash.ts';
import { createTxn, EnsembleScript, SESSION, TXN_BYTES_MAX, txnOf } from './testing/ensemble-script.ts';

function serving(followers: readonly number[] = [1, 2]): EnsembleScript {
  return new EnsembleScript().serve(followers);
}

/** Server 2 leads epoch 2 with server 1, from logs that the test has prepared. */
function changeLeader(script: EnsembleScript): void {
  script.crash(3);
  for (const server of [1, 2]) {
    script.disconnect(server, 3);
    script.role(server, 'looking');
  }
  script.elect(2, [1, 2], 2);
}

describe('the rules of broadcast', () => {
  it('Z1: a server holds a txn that no leader has proposed', () => {
    const script = serving();
    script.log(1, txnOf(makeZxid(1, 1), createTxn('/made-up')));
    expect(script.broken).toEqual(['Z1']);
  });

  it('Z1: a leader commits what no leader has proposed', () => {
    const script = serving();
    script.committed(3, makeZxid(1, 1));
    expect(script.broken).toContain('Z1');
  });

  it('Z1 allows a leader whose own log is slower than those of a quorum', () => {
    const script = serving();
    const txn = script.nextTxn(3);
    for (const follower of [1, 2]) {
      script.propose(3, follower, txn);
      script.store(follower, txn);
      script.ack(follower, 3, txn.zxid);
    }
    script.commit(3, 1, txn.zxid);
    script.store(3, txn);
    script.committed(3, txn.zxid);
    expect(script.broken).toEqual([]);
  });

  it.each([
    ['of what a quorum of disks holds may be the first sign of the commit', [1, 2], []],
    ['E8, Z9: before a quorum has it', [1], ['E8', 'Z9']],
  ] as const)('an INFORM %s', (_what, holders, broken) => {
    const script = serving();
    script.observe(4, 3, 1);
    script.upToDate(4, 3);
    const txn = script.nextTxn(3);
    for (const follower of holders) {
      script.propose(3, follower, txn);
      script.store(follower, txn);
      script.ack(follower, 3, txn.zxid);
    }
    script.down(3, 4, makeProposal(PacketType.inform, txn.entry), bodyHash(txn.payload));
    script.store(4, txn);
    script.committed(4, txn.zxid);
    script.apply(4, txn);
    expect(script.broken).toEqual(broken);
  });

  it('D11: a leader sends a txn that is longer than servers accept', () => {
    const script = serving();
    const createOf = (counter: number, bytes: number) => {
      const zxid = makeZxid(1, counter);
      const rest = txnOf(zxid, createTxn('')).payload.length;
      return txnOf(zxid, createTxn('p'.repeat(bytes - rest)));
    };
    script.propose(3, 1, createOf(1, TXN_BYTES_MAX));
    expect(script.broken).toEqual([]);
    script.propose(3, 1, createOf(2, TXN_BYTES_MAX + 1));
    expect(script.broken).toEqual(['D11']);
  });

  it('Z2: one zxid names two txns', () => {
    const script = serving();
    const txn = script.nextTxn(3);
    script.propose(3, 1, txn);
    script.log(1, txnOf(txn.zxid, createTxn('/another')));
    expect(script.broken).toEqual(['Z2']);
  });

  it('Z6: a new epoch is committed from its second txn on', () => {
    const script = serving();
    script.write();
    changeLeader(script);
    script.begin(2, 2, [1]);
    const [skipped, late] = [txnOf(makeZxid(2, 1), createTxn('/b')), txnOf(makeZxid(2, 2), createTxn('/c'))];
    for (const txn of [skipped, late]) script.propose(2, 1, txn);
    for (const server of [1, 2]) script.store(server, late);
    script.ack(1, 2, late.zxid);
    script.committed(2, late.zxid);
    expect(script.broken).toEqual(['Z11', 'Z6']);
  });

  it('Z7: a txn of an older epoch is committed after one of a newer epoch', () => {
    const script = serving();
    script.write();
    const open = script.nextTxn(3);
    for (const follower of [1, 2]) script.propose(3, follower, open);
    changeLeader(script);
    script.begin(2, 2, [1]);
    script.write(2, [1]);
    expect(script.broken).toEqual([]);
    script.committed(2, open.zxid);
    expect(script.broken).toContain('Z7');
  });

  it('Z3: a txn is committed after a later one of its epoch', () => {
    const script = serving();
    const txns = [makeZxid(1, 1), makeZxid(1, 2)].map((zxid) => txnOf(zxid, createTxn('/a')));
    for (const txn of txns) for (const follower of [1, 2]) script.propose(3, follower, txn);
    for (const server of [1, 2, 3]) script.store(server, txns[1]!);
    for (const follower of [1, 2]) script.ack(follower, 3, txns[1]!.zxid);
    script.committed(3, txns[1]!.zxid);
    expect(script.broken).not.toContain('Z3');
    script.committed(3, txns[0]!.zxid);
    expect(script.broken).toContain('Z3');
  });

  it('Z8: a leader begins without a txn that is committed', () => {
    const script = serving();
    script.write();
    script.write(3, [1]);
    changeLeader(script);
    script.begin(2, 2, []);
    expect(script.broken).toEqual(['E8', 'Z8']);
  });

  it('Z8: a leader proposes before its epoch is established', () => {
    const script = new EnsembleScript();
    script.elect(3);
    script.discover(3, 1, [1]);
    script.log(3, script.nextTxn(3));
    expect(script.broken).toEqual(['Z8']);
  });

  it('Z9: a leader commits what no quorum of disks holds', () => {
    const script = serving();
    const txn = script.nextTxn(3);
    script.propose(3, 1, txn);
    script.store(3, txn);
    script.log(1, txn);
    script.ack(1, 3, txn.zxid);
    script.committed(3, txn.zxid);
    expect(script.broken).toEqual(['D1', 'Z9']);
  });

  it('Z9: a committed txn is lost from the disks of a quorum later', () => {
    const script = serving();
    script.write();
    const txn = script.write(3, [1]);
    script.truncate(1, makeZxid(1, 1));
    expect(txn.zxid).toBe(makeZxid(1, 2));
    expect(script.broken).toEqual(['Z9']);
  });

  it('Z12: a leader leaves out a zxid', () => {
    const script = serving();
    script.write();
    script.propose(3, 1, txnOf(makeZxid(1, 3), createTxn('/c')));
    expect(script.broken).toEqual(['Z12']);
  });

  it.each([0, 2 ** 32 - 1])('Z12: a txn takes the counter %d', (counter) => {
    const script = serving();
    script.propose(3, 1, txnOf(makeZxid(1, counter), createTxn('/c')));
    expect(script.broken).toContain('Z12');
  });

  it('Z15: a leader commits before a quorum has synchronized', () => {
    const script = new EnsembleScript();
    script.elect(3);
    script.discover(3, 1, [1]);
    script.synchronize(1, 3, 1);
    const txn = script.nextTxn(3);
    script.spread(3, [1], txn);
    script.committed(3, txn.zxid);
    expect(script.broken).toContain('Z15');
  });

  it('Z16: a txn is committed and an earlier proposal of its leader is not', () => {
    const script = serving();
    script.write();
    const [skipped, next] = [txnOf(makeZxid(1, 2), createTxn('/b')), txnOf(makeZxid(1, 3), createTxn('/c'))];
    for (const txn of [skipped, next]) for (const follower of [1, 2]) script.propose(3, follower, txn);
    for (const server of [1, 2, 3]) script.store(server, next);
    for (const follower of [1, 2]) script.ack(follower, 3, next.zxid);
    script.committed(3, next.zxid);
    expect(script.broken).toEqual(['Z11', 'Z16']);
  });

  it('E8: a leader counts an observer for a proposal', () => {
    const script = serving([1]);
    script.observe(4, 3, 1);
    const txn = script.nextTxn(3);
    script.spread(3, [4], txn);
    script.committed(3, txn.zxid);
    expect(script.broken).toEqual(['E8', 'Z9']);
  });

  it.each([
    ['with', 0, []],
    ['before', 1, ['E8']],
  ])('E8: an acknowledgement comes %s the end of its connection, and the commit %i ms later', (_when, ms, broken) => {
    const script = serving();
    const txn = script.nextTxn(3);
    script.propose(3, 1, txn);
    script.propose(3, 2, txn);
    script.store(1, txn);
    script.store(2, txn);
    script.ack(1, 3, txn.zxid);
    script.ack(2, 3, txn.zxid);
    script.disconnect(1, 3);
    script.nowMs += ms;
    script.committed(3, txn.zxid);
    expect(script.broken).toEqual(broken);
  });

  const timeout: Txn = { type: OpCode.createSession, timeoutMs: 1000 };
  const end: Txn = { type: OpCode.closeSession, paths: [] };

  it('S1: a session id is given twice', () => {
    const script = serving();
    for (const txn of [timeout, end, timeout]) script.write(3, [1, 2], script.nextTxn(3, txn));
    expect(script.broken).toEqual(['S1']);
  });

  it('S2: a session changes something after its end', () => {
    const script = serving();
    for (const txn of [timeout, end, createTxn('/a')]) script.write(3, [1, 2], script.nextTxn(3, txn));
    expect(script.broken).toEqual(['S2']);
  });

  it('S2 allows a refusal and a second end after the end', () => {
    const script = serving();
    const refusal: Txn = { type: OpCode.error, error: -112 };
    for (const txn of [timeout, createTxn('/a'), end, refusal, end]) script.write(3, [1, 2], script.nextTxn(3, txn));
    expect(script.broken).toEqual([]);
  });

  it.each([
    [500, 0, ['S4']],
    [1000, 0, []],
    // It may stand behind the packet that lets the leader end the session.
    [500, 2, ['S4']],
    [1000, 2, []],
  ])('S4: a leader ends a session after %d ms of its timeout of 1000, with %d pings at that moment', (...row) => {
    const [silentMs, pings, broken] = row;
    const script = serving();
    script.nowMs = 10_000;
    const ping = { type: 5, zxid: 0 as Zxid, sessions: [{ sessionId: SESSION, timeoutMs: 1000 }] } as const;
    script.up(1, 3, ping);
    script.nowMs += silentMs;
    for (let i = 0; i < pings; i++) script.up(1, 3, ping);
    script.trace(3, { kind: 'session-expired', sessionId: SESSION, timeoutMs: 1000 });
    expect(script.broken).toEqual(broken);
  });

  it.each([
    ['whose end is committed', true, ['S2']],
    ['that lives', false, []],
  ] as const)('S2: a leader says that a session lives, one %s', (_which, isEnded, broken) => {
    const script = new EnsembleScript().serve();
    script.write(3, [1, 2], script.nextTxn(3, { type: OpCode.createSession, timeoutMs: 1000 }));
    if (isEnded) script.write(3, [1, 2], script.nextTxn(3, { type: OpCode.closeSession, paths: [] }));
    script.down(3, 1, { type: PacketType.revalidate, sessionId: SESSION, isValid: true });
    expect(script.broken).toEqual(broken);
  });
});
