import { PacketType, ZXID_NONE, ZXID_ZERO } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { catchingUp, makeLearner, PING, SYNC, stopReason, UPTODATE, z } from '../testing/learner-stages.ts';
import { commit, inform, leaderInfo, newLeader, proposal } from '../testing/test-learner.ts';

describe('synchronization', () => {
  test.each([
    [PacketType.diff, 'diff'],
    [PacketType.trunc, 'trunc'],
    [PacketType.snap, 'snap'],
  ] as const)('the first packet of the leader is reported (%s)', (type, mode) => {
    const one = makeLearner();
    one.learner.onConnected();
    one.receive(leaderInfo(2));
    one.diskDoesAll();
    expect(one.synchronizations).toEqual([]);
    one.receive({ type, zxid: z(1, 2) });
    expect(one.synchronizations).toEqual([{ mode, zxid: z(1, 2) }]);
  });

  test('nothing is processed until the history is ready', () => {
    const one = makeLearner();
    one.learner.onConnected();
    one.receive(leaderInfo(2));
    one.diskDoesAll();
    one.takeAsked();
    one.receive({ type: PacketType.trunc, zxid: z(1, 2) }, proposal(z(1, 3)), newLeader(2));
    expect(one.takeAsked().map(({ kind }) => kind)).toEqual(['pause', 'truncate']);
    expect(one.learner.phase).toBe('preparing');
    one.finishChange();
    expect(one.takeAsked().map(({ kind }) => kind)).toEqual(['resume', 'append', 'proposed']);
    expect(one.learner.phase).toBe('securing');
  });

  test('a truncation that ends too early ends the role, and the next one reports where this server is', () => {
    const one = makeLearner();
    one.learner.onConnected();
    one.receive(leaderInfo(2));
    one.diskDoesAll();
    one.receive({ type: PacketType.trunc, zxid: z(1, 2) });
    one.disk.change = { what: 'truncated', base: ZXID_ZERO, log: [z(1, 1)] };
    one.finishChange();
    expect(stopReason(one)).toBe('the log cannot be truncated to 0x100000002: it ends with 0x100000001 now');
    one.restart();
    one.learner.onConnected();
    one.receive(leaderInfo(3));
    one.diskDoesAll();
    expect(one.takeSent().at(-1)).toMatchObject({ type: PacketType.ackEpoch, zxid: z(1, 1) });
  });

  test.each([
    ['a txn that comes again', [proposal(z(1, 3))], /txn 0x100000003 after 0x100000003: its history has a gap/],
    ['a gap', [proposal(z(1, 4)), proposal(z(1, 6))], /txn 0x100000006 after 0x100000004: its history has a gap/],
    ['an older epoch', [proposal(z(2, 1)), proposal(z(1, 4))], /txn 0x100000004 after 0x200000001/],
    ['a later epoch', [proposal(z(3, 1))], /txn 0x300000001, which is of a later epoch than its own, 2/],
    ['a counter of 0', [proposal(z(2, 0))], /txn 0x200000000, which is no zxid of a txn/],
    ['a gap of INFORM', [inform(z(1, 5))], /its history has a gap/],
    ['a commit of nothing', [commit(z(1, 4))], /COMMIT of 0x100000004, which it has not proposed/],
    ['another NEWLEADER', [newLeader(3)], /NEWLEADER of 0x300000000, but is of epoch 2/],
    ['a second DIFF', [{ type: PacketType.diff, zxid: z(1, 3) }], /DIFF out of turn/],
    ['a second LEADERINFO', [leaderInfo(2)], /LEADERINFO out of turn/],
    ['UPTODATE too early', [newLeader(2), UPTODATE], /UPTODATE out of turn, to a learner that is securing/],
    ['an old epoch behind NEWLEADER', [newLeader(2), proposal(z(1, 4))], /of an older epoch behind NEWLEADER/],
    ['a stray SYNC', [SYNC], /SYNC out of turn/],
    ['a stray REVALIDATE', [{ type: PacketType.revalidate, sessionId: 1n, isValid: true }], /REVALIDATE out of turn/],
    ['HANDOVER', [{ type: PacketType.handOver, zxid: z(1, 3) }], /HANDOVER out of turn/],
  ] as const)('%s ends the role', (_what, packets, reason) => {
    const one = catchingUp();
    one.receive(...packets);
    expect(stopReason(one)).toMatch(reason);
  });

  test.each([
    [{ type: PacketType.trunc, zxid: z(1, 4) }, /TRUNC to 0x100000004, but the log ends with 0x100000003/],
    [{ type: PacketType.trunc, zxid: ZXID_NONE }, /TRUNC to 0xf+, but/],
    [{ type: PacketType.snap, zxid: z(3, 1) }, /SNAP of 0x300000001, but is of epoch 2/],
    [{ type: PacketType.snap, zxid: ZXID_NONE }, /SNAP of 0xf+, but/],
    [newLeader(2), /NEWLEADER out of turn/],
  ] as const)('an invalid start ends the role: %j', (packet, reason) => {
    const one = makeLearner();
    one.learner.onConnected();
    one.receive(leaderInfo(2));
    one.diskDoesAll();
    one.receive(packet);
    expect(stopReason(one)).toMatch(reason);
  });

  test('the first packet behind ACKEPOCH is the ACK of NEWLEADER, then come the ACKs of what is not committed', () => {
    const one = catchingUp();
    one.receive(proposal(z(1, 4)), commit(z(1, 4)), proposal(z(2, 1)), proposal(z(2, 2)), newLeader(2), PING);
    one.receive(proposal(z(2, 3)));
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 0), z(2, 1), z(2, 2), z(2, 3)]);
  });

  test('a proposal behind NEWLEADER need not be durable for its ACK', () => {
    const one = catchingUp();
    one.receive(proposal(z(1, 4)), newLeader(2), proposal(z(2, 1)));
    one.disk.sync(one.learner, 1);
    one.disk.finishEpoch(one.learner);
    expect(one.takeAcks()).toEqual([z(2, 0), z(1, 4)]);
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 1)]);
  });

  test('clients are served once everything committed at UPTODATE is reported as committed', () => {
    const one = catchingUp();
    one.receive(newLeader(2));
    one.diskDoesAll();
    one.receive(proposal(z(2, 1)), commit(z(2, 1)), UPTODATE, proposal(z(2, 2)), commit(z(2, 2)));
    one.takeAsked();
    expect(one.learner.phase).toBe('finishing');
    one.disk.sync(one.learner, 1);
    expect(one.takeAsked()).toEqual([
      { kind: 'send', packet: { type: PacketType.ack, zxid: z(2, 1) } },
      { kind: 'committed', zxid: z(2, 1) },
      { kind: 'send', packet: { type: PacketType.ack, zxid: z(2, 0) } },
      { kind: 'serve', epoch: 2 },
    ]);
  });
});
