import { Announcement, makeProposal, makeZxid, PacketType, type Zxid } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { bodyHash } from './body-hash.ts';
import { createTxn, EnsembleScript, txnOf } from './testing/ensemble-script.ts';

function serving(): EnsembleScript {
  return new EnsembleScript().serve();
}

/** Learner 1 has promised epoch 1 and is to be sent its history. */
function promised(): EnsembleScript {
  const script = new EnsembleScript();
  script.elect(3);
  script.discover(3, 1, [1]);
  return script;
}

const NEW_LEADER = { type: PacketType.newLeader, zxid: makeZxid(1, 0), configText: '' } as const;
const DIFF = { type: PacketType.diff, zxid: 0 as Zxid } as const;

describe('the rules of the stream to a learner', () => {
  it('Z13: a COMMIT is sent for what was not', () => {
    const script = serving();
    const txn = script.nextTxn(3);
    script.spread(3, [2], txn);
    script.committed(3, txn.zxid);
    script.commit(3, 1, txn.zxid);
    expect(script.broken).toEqual(['Z13']);
  });

  it('Z14: a COMMIT leaves out an earlier proposal', () => {
    const script = serving();
    commitSecondOfTwo(script);
    expect(script.broken).toEqual(['Z14']);
  });

  it('a COMMIT may leave out earlier proposals to a server of ours, which takes it for all of them', () => {
    const script = serving();
    script.greet(1, 3, { announces: Announcement.keepsLog });
    commitSecondOfTwo(script);
    expect(script.broken).toEqual([]);
  });

  it('Z14: a COMMIT is sent twice', () => {
    const script = serving();
    const txn = script.write();
    script.commit(3, 1, txn.zxid);
    expect(script.broken).toEqual(['Z14']);
  });

  it('Z14: a proposal is sent twice', () => {
    const script = serving();
    const txn = script.write();
    script.propose(3, 1, txn);
    expect(script.broken).toEqual(['Z14']);
  });

  it.each([
    ['not before that of a later one', [], ['Z14']],
    ['in their order behind that of NEWLEADER', ['due'], []],
  ] as const)('Z14: proposals that were durable before NEWLEADER are acknowledged, %s', (_when, acked, broken) => {
    const script = promised();
    const first = txnOf(makeZxid(1, 1), createTxn('/first'));
    script.down(3, 1, DIFF);
    script.propose(3, 1, first);
    script.log(1, first);
    script.down(3, 1, NEW_LEADER);
    script.durable(1);
    script.epoch(1, 'currentEpoch', 1);
    script.ack(1, 3, makeZxid(1, 0));
    if (acked.length > 0) script.ack(1, 3, first.zxid);
    const second = txnOf(makeZxid(1, 2), createTxn('/second', 2));
    script.propose(3, 1, second);
    script.store(1, second);
    script.ack(1, 3, second.zxid);
    expect(script.broken.filter((invariant) => invariant === 'Z14')).toEqual(broken);
  });

  it('Z14: UPTODATE comes before NEWLEADER', () => {
    const script = promised();
    script.down(3, 1, DIFF);
    script.down(3, 1, { type: PacketType.upToDate });
    expect(script.broken).toEqual(['Z14']);
  });

  it('Z14: a history has no beginning', () => {
    const script = promised();
    script.down(3, 1, NEW_LEADER);
    expect(script.broken).toEqual(['Z14']);
  });

  it('Z14: a COMMIT comes between NEWLEADER and UPTODATE', () => {
    const script = new EnsembleScript();
    script.elect(3);
    script.discover(3, 1, [1, 2]);
    for (const follower of [1, 2]) script.synchronize(follower, 3, 1);
    script.establish(3, 1);
    script.upToDate(2, 3);
    const txn = script.nextTxn(3);
    script.spread(3, [1, 2], txn);
    script.committed(3, txn.zxid);
    script.commit(3, 1, txn.zxid);
    expect(script.broken).toEqual(['Z14']);
  });

  it.each([
    ['does not follow', false, ['Z14']],
    ['follows', true, []],
  ] as const)('Z14: a COMMIT that waited for UPTODATE %s it', (_what, isSent, broken) => {
    const script = new EnsembleScript();
    script.elect(3);
    script.discover(3, 1, [1, 2]);
    script.synchronize(2, 3, 1);
    script.establish(3, 1);
    script.upToDate(2, 3);
    script.down(3, 1, DIFF);
    script.down(3, 1, NEW_LEADER);
    const txn = script.nextTxn(3);
    script.propose(3, 1, txn);
    script.spread(3, [2], txn);
    script.committed(3, txn.zxid);
    script.epoch(1, 'currentEpoch', 1);
    script.ack(1, 3, makeZxid(1, 0));
    script.down(3, 1, { type: PacketType.upToDate });
    if (isSent) script.commit(3, 1, txn.zxid);
    script.ping(3, 1);
    expect(script.broken).toEqual(broken);
  });

  it('an INFORM may come between NEWLEADER and UPTODATE', () => {
    const script = serving();
    script.observe(4, 3, 1);
    const txn = script.write();
    script.down(3, 4, makeProposal(PacketType.inform, txn.entry), bodyHash(txn.payload));
    script.upToDate(4, 3);
    expect(script.broken).toEqual([]);
  });

  it('Z14: a learner answers a ping before it acknowledges NEWLEADER', () => {
    const script = promised();
    script.down(3, 1, DIFF);
    script.up(1, 3, { type: PacketType.ping, zxid: 0 as Zxid, sessions: [] });
    expect(script.broken).toEqual(['Z14']);
  });

  it('Z14: what is sent is no packet', () => {
    const script = serving();
    script.checker.onWire({
      kind: 'garbage',
      stage: 'sent',
      connection: 1,
      from: 3,
      to: 1,
      why: 'a length is out of range',
    });
    expect(script.broken).toEqual(['Z14']);
  });

  it('D1: a learner acknowledges what its disk does not have', () => {
    const script = serving();
    const txn = script.nextTxn(3);
    script.propose(3, 1, txn);
    script.log(1, txn);
    script.ack(1, 3, txn.zxid);
    expect(script.broken).toEqual(['D1']);
  });

  it('D2: a learner acknowledges NEWLEADER before its epoch is durable', () => {
    const script = promised();
    script.synchronize(1, 3, 1, { forgetsEpoch: true });
    expect(script.broken).toEqual(['D2']);
  });

  it('D2: a learner acknowledges NEWLEADER before the history is durable', () => {
    const script = serving();
    script.write(3, [2]);
    script.role(1, 'looking');
    script.vote(3, 1, { leader: 3, state: 2 });
    script.disconnect(1, 3);
    script.role(1, 'following', 3);
    script.greet(1, 3);
    script.promise(1, 3, 1, { ackCurrentEpoch: -1 });
    const txn = script.logs.get(3)![0]!;
    script.down(3, 1, DIFF);
    script.propose(3, 1, txn);
    script.commit(3, 1, txn.zxid);
    script.log(1, txn);
    script.down(3, 1, NEW_LEADER);
    script.ack(1, 3, makeZxid(1, 0));
    expect(script.broken).toEqual(['D2']);
  });
});

/** Leader 3 has two proposals acknowledged, and tells learner 1 of the second alone that it is committed. */
function commitSecondOfTwo(script: EnsembleScript): void {
  const first = script.nextTxn(3);
  script.spread(3, [1, 2], first);
  const second = script.nextTxn(3);
  script.spread(3, [1, 2], second);
  script.committed(3, second.zxid);
  script.commit(3, 1, second.zxid);
}
