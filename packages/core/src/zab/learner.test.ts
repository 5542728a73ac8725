import { Announcement, makeZxid, PacketType, ZXID_NONE, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { onDisk } from '../base/durable.ts';
import {
  commit,
  INIT_LIMIT,
  inform,
  leaderInfo,
  newLeader,
  proposal,
  SYNC_LIMIT,
  TestLearner,
  type TestLearnerShape,
  TICK_MS,
} from '../testing/test-learner.ts';

const z = makeZxid;
const UPTODATE = { type: PacketType.upToDate } as const;
const SYNC = { type: PacketType.sync } as const;
const PING = { type: PacketType.ping, zxid: z(2, 1) } as const;
const LOG = [z(1, 1), z(1, 2), z(1, 3)];

/** A server with the txns 1 to 3 of epoch 1. */
function make(shape: Partial<TestLearnerShape> = {}): TestLearner {
  return new TestLearner({ log: LOG, acceptedEpoch: 1, currentEpoch: 1, ...shape });
}

/** … that serves clients of a leader of epoch 2. */
function synchronized(shape: Partial<TestLearnerShape> = {}): TestLearner {
  const one = make(shape);
  one.synchronize(2);
  expect(one.learner.phase).toBe('broadcast');
  one.takeAsked();
  return one;
}

/** … whose leader of epoch 2 has said how it catches up. */
function catchingUp(shape: Partial<TestLearnerShape> = {}): TestLearner {
  const one = make(shape);
  one.beginDiff(2);
  one.takeAsked();
  return one;
}

function stopReason(one: TestLearner): string | undefined {
  const stops = one.takeAsked().flatMap((asked) => (asked.kind === 'stop' ? [asked.reason] : []));
  expect(stops.length).toBeLessThanOrEqual(1);
  return stops[0];
}

function committedBy(one: TestLearner): readonly Zxid[] {
  return one.takeAsked().flatMap((asked) => (asked.kind === 'committed' ? [asked.zxid] : []));
}

describe('discovery', () => {
  test('a follower and an observer say who they are, what they have promised and which membership they follow', () => {
    const follower = make({ acceptedEpoch: 4 });
    follower.learner.onConnected();
    const info = { zxid: z(4, 0), serverId: 2, protocolVersion: 0x10000, configVersion: ZXID_ZERO };
    expect(follower.takeSent()).toEqual([{ type: PacketType.followerInfo, ...info, announces: 14 }]);
    const observer = make({ acceptedEpoch: 4, kind: 'observer' });
    observer.learner.onConnected();
    expect(observer.takeSent()).toEqual([{ type: PacketType.observerInfo, ...info, announces: 12 }]);
  });

  test('ACKEPOCH of a later epoch leaves when acceptedEpoch is durable', () => {
    const one = make();
    one.learner.onConnected();
    one.takeAsked();
    one.hear(leaderInfo(2));
    expect(one.takeAsked()).toEqual([{ kind: 'write', name: 'acceptedEpoch', epoch: 2 }]);
    one.diskDoesAll();
    expect(one.takeSent()).toEqual([{ type: PacketType.ackEpoch, zxid: z(1, 3), currentEpoch: 1 }]);
  });

  test('an epoch that was accepted before is acknowledged at once, as one that is not to be counted again', () => {
    const one = make({ acceptedEpoch: 2 });
    one.learner.onConnected();
    one.takeAsked();
    one.hear(leaderInfo(2));
    expect(one.takeAsked()).toEqual([
      { kind: 'send', packet: { type: PacketType.ackEpoch, zxid: z(1, 3), currentEpoch: -1 } },
    ]);
  });

  test.each([
    ['a leader of an older epoch', leaderInfo(2), 'the leader is of epoch 2, but this server has accepted epoch 3'],
    ['a leader of another protocol', leaderInfo(4, 0xffff), 'the leader speaks the old protocol 65535'],
    ['a leader from before 3.4', newLeader(4), 'the leader speaks an old protocol: it begins with NEWLEADER'],
    ['no leader at all', UPTODATE, 'the leader has sent UPTODATE out of turn, to a learner that is discovery'],
    ['a txn', proposal(z(1, 4)), 'the leader has sent txn 0x100000004 before the synchronization has begun'],
    ['a commit', commit(z(1, 3)), 'the leader has sent COMMIT of 0x100000003, which it has not proposed'],
  ])('%s is left', (_what, packet, reason) => {
    const one = make({ acceptedEpoch: 3 });
    one.learner.onConnected();
    one.hear(packet);
    expect(stopReason(one)).toBe(reason);
  });

  test('LEADERINFO names an epoch and nothing else', () => {
    for (const zxid of [z(2, 1), ZXID_NONE]) {
      const one = make();
      one.learner.onConnected();
      one.hear({ type: PacketType.leaderInfo, zxid, protocolVersion: 0x10000, announces: 0 });
      expect(stopReason(one)).toMatch(/which is no epoch/);
    }
  });

  test('pings and packets that nobody knows are passed over wherever they come', () => {
    const one = make();
    one.learner.onConnected();
    const noise = [PING, { type: null, typeNumber: 99 }] as const;
    one.hear(...noise, leaderInfo(2), ...noise);
    one.diskDoesAll();
    one.hear(...noise, { type: PacketType.diff, zxid: z(1, 3) });
    one.diskDoesAll();
    one.hear(...noise, newLeader(2), ...noise);
    one.diskDoesAll();
    one.hear(...noise);
    expect(one.takeAsked().filter(({ kind }) => kind === 'pinged' || kind === 'stop')).toEqual([]);
    one.hear(UPTODATE, ...noise);
    expect(one.takeAsked().at(-1)).toEqual({ kind: 'pinged', zxid: PING.zxid });
  });
});

describe('synchronization', () => {
  test.each([
    [PacketType.diff, 'diff'],
    [PacketType.trunc, 'trunc'],
    [PacketType.snap, 'snap'],
  ] as const)('what the leader begins with is told (%s)', (type, mode) => {
    const one = make();
    one.learner.onConnected();
    one.hear(leaderInfo(2));
    one.diskDoesAll();
    expect(one.synchronizations).toEqual([]);
    one.hear({ type, zxid: z(1, 2) });
    expect(one.synchronizations).toEqual([{ mode, zxid: z(1, 2) }]);
  });

  test('nothing is processed until the history is ready', () => {
    const one = make();
    one.learner.onConnected();
    one.hear(leaderInfo(2));
    one.diskDoesAll();
    one.takeAsked();
    one.hear({ type: PacketType.trunc, zxid: z(1, 2) }, proposal(z(1, 3)), newLeader(2));
    expect(one.takeAsked().map(({ kind }) => kind)).toEqual(['pause', 'truncate']);
    expect(one.learner.phase).toBe('preparing');
    one.finishChange();
    expect(one.takeAsked().map(({ kind }) => kind)).toEqual(['resume', 'append', 'proposed']);
    expect(one.learner.phase).toBe('securing');
  });

  test('a truncation that ends earlier than it should ends the role, and the next one says where this server is', () => {
    const one = make();
    one.learner.onConnected();
    one.hear(leaderInfo(2));
    one.diskDoesAll();
    one.hear({ type: PacketType.trunc, zxid: z(1, 2) });
    one.disk.change = { what: 'truncated', base: ZXID_ZERO, log: [z(1, 1)] };
    one.finishChange();
    expect(stopReason(one)).toBe('the log cannot be truncated to 0x100000002: it ends with 0x100000001 now');
    one.restart();
    one.learner.onConnected();
    one.hear(leaderInfo(3));
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
    ['SYNC to nobody', [SYNC], /SYNC out of turn/],
    ['REVALIDATE to nobody', [{ type: PacketType.revalidate, sessionId: 1n, isValid: true }], /REVALIDATE out of turn/],
    ['HANDOVER', [{ type: PacketType.handOver, zxid: z(1, 3) }], /HANDOVER out of turn/],
  ] as const)('%s ends the role', (_what, packets, reason) => {
    const one = catchingUp();
    one.hear(...packets);
    expect(stopReason(one)).toMatch(reason);
  });

  test.each([
    [{ type: PacketType.trunc, zxid: z(1, 4) }, /TRUNC to 0x100000004, but the log ends with 0x100000003/],
    [{ type: PacketType.trunc, zxid: ZXID_NONE }, /TRUNC to 0xf+, but/],
    [{ type: PacketType.snap, zxid: z(3, 1) }, /SNAP of 0x300000001, but is of epoch 2/],
    [{ type: PacketType.snap, zxid: ZXID_NONE }, /SNAP of 0xf+, but/],
    [newLeader(2), /NEWLEADER out of turn/],
  ] as const)('a start that cannot be ends the role: %j', (packet, reason) => {
    const one = make();
    one.learner.onConnected();
    one.hear(leaderInfo(2));
    one.diskDoesAll();
    one.hear(packet);
    expect(stopReason(one)).toMatch(reason);
  });

  test('the first packet behind ACKEPOCH is the ACK of NEWLEADER, then come the ACKs of what is not committed', () => {
    const one = catchingUp();
    one.hear(proposal(z(1, 4)), commit(z(1, 4)), proposal(z(2, 1)), proposal(z(2, 2)), newLeader(2), PING);
    one.hear(proposal(z(2, 3)));
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 0), z(2, 1), z(2, 2), z(2, 3)]);
  });

  test('a proposal behind NEWLEADER need not be durable for its ACK', () => {
    const one = catchingUp();
    one.hear(proposal(z(1, 4)), newLeader(2), proposal(z(2, 1)));
    one.disk.sync(one.learner, 1);
    one.disk.finishEpoch(one.learner);
    expect(one.takeAcks()).toEqual([z(2, 0), z(1, 4)]);
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 1)]);
  });

  test('clients are served when everything that was committed at UPTODATE is told as committed', () => {
    const one = catchingUp();
    one.hear(newLeader(2));
    one.diskDoesAll();
    one.hear(proposal(z(2, 1)), commit(z(2, 1)), UPTODATE, proposal(z(2, 2)), commit(z(2, 2)));
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

describe('broadcast', () => {
  test('a follower acknowledges each proposal once, when it is durable, also one that is committed already', () => {
    const one = synchronized();
    one.hear(proposal(z(2, 1)), proposal(z(2, 2)), commit(z(2, 1)));
    expect(one.takeAcks()).toEqual([]);
    one.disk.sync(one.learner, 1);
    expect(one.takeAcks()).toEqual([z(2, 1)]);
    one.hear(commit(z(2, 2)));
    one.disk.sync(one.learner);
    one.learner.onLogSynced(onDisk(z(2, 2)));
    expect(one.takeAcks()).toEqual([z(2, 2)]);
  });

  test('an observer acknowledges nothing but the epoch', () => {
    const one = make({ kind: 'observer' });
    one.beginDiff(2);
    one.takeAsked();
    one.hear(proposal(z(1, 4)), commit(z(1, 4)), proposal(z(2, 1)), newLeader(2), inform(z(2, 2)));
    one.diskDoesAll();
    one.hear(UPTODATE, inform(z(2, 3)));
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 0), z(2, 0)]);
    expect(one.learner.lastCommitted).toBe(z(2, 3));
  });

  test('an observer that does not log tells of commits at once and appends nothing', () => {
    const one = synchronized({ kind: 'observer', logsInforms: false });
    one.hear(inform(z(2, 1)));
    expect(one.takeAsked()).toEqual([
      { kind: 'proposed', zxid: z(2, 1) },
      { kind: 'committed', zxid: z(2, 1) },
    ]);
  });

  test('commits that activate a membership are like any other', () => {
    const one = synchronized();
    one.hear(proposal(z(2, 1)), { type: PacketType.commitAndActivate, zxid: z(2, 1), designatedLeader: 3 });
    one.diskDoesAll();
    expect(committedBy(one)).toEqual([z(2, 1)]);
  });

  test('a sync is answered behind everything that was committed before it, and not behind what comes later', () => {
    const one = synchronized();
    one.hear(SYNC);
    expect(one.takeAsked()).toEqual([{ kind: 'synced', count: 1 }]);
    one.hear(proposal(z(2, 1)), commit(z(2, 1)), SYNC, SYNC, proposal(z(2, 2)), commit(z(2, 2)), SYNC);
    one.takeAsked();
    one.disk.sync(one.learner, 1);
    expect(one.takeAsked().slice(1)).toEqual([
      { kind: 'committed', zxid: z(2, 1) },
      { kind: 'synced', count: 3 },
    ]);
    one.disk.sync(one.learner, 1);
    expect(one.takeAsked().at(-1)).toEqual({ kind: 'synced', count: 4 });
  });

  test('what the leader says of sessions, of the link and of its place is passed on', () => {
    const one = synchronized();
    one.hear(PING, { type: PacketType.revalidate, sessionId: 7n, isValid: false });
    one.hear({ type: PacketType.handOver, zxid: z(2, 0) });
    expect(one.takeAsked()).toEqual([
      { kind: 'pinged', zxid: PING.zxid },
      { kind: 'revalidated', sessionId: 7n, isValid: false },
      { kind: 'handed-over' },
    ]);
  });
});

describe('time', () => {
  test('connecting may take initLimit ticks', () => {
    const one = make();
    one.advance(INIT_LIMIT * TICK_MS - 1);
    expect(stopReason(one)).toBeUndefined();
    one.advance(1);
    expect(stopReason(one)).toBe('the leader could not be reached in time');
  });

  test('the leader may be silent for initLimit ticks before UPTODATE and for syncLimit ticks after it', () => {
    const one = catchingUp();
    one.advance(INIT_LIMIT * TICK_MS - 1);
    one.hear(proposal(z(1, 4)));
    one.advance(INIT_LIMIT * TICK_MS - 1);
    one.hear(newLeader(2));
    one.diskDoesAll();
    one.advance(INIT_LIMIT * TICK_MS - 1);
    expect(stopReason(one)).toBeUndefined();
    one.hear(UPTODATE);
    one.advance(SYNC_LIMIT * TICK_MS - 1);
    expect(stopReason(one)).toBeUndefined();
    one.advance(1);
    expect(stopReason(one)).toBe('the leader has said nothing for 10000 ms');
  });

  test('while its own disk is busy the leader may be silent', () => {
    const one = make();
    one.learner.onConnected();
    one.hear(leaderInfo(2));
    expect(one.learner.nextDeadlineMs).toBe(Number.POSITIVE_INFINITY);
    one.diskDoesAll();
    one.hear({ type: PacketType.trunc, zxid: z(1, 2) });
    expect(one.learner.nextDeadlineMs).toBe(Number.POSITIVE_INFINITY);
    one.diskDoesAll();
    one.hear(proposal(z(1, 3)), newLeader(2), PING);
    expect(one.learner.nextDeadlineMs).toBe(Number.POSITIVE_INFINITY);
    one.diskDoesAll();
    expect(one.learner.nextDeadlineMs).toBe(one.clock.nowMs + INIT_LIMIT * TICK_MS);
  });

  test('a snapshot may take as long as it likes while bytes of it arrive', () => {
    const one = make();
    one.learner.onConnected();
    one.hear(leaderInfo(2));
    one.diskDoesAll();
    one.hear({ type: PacketType.snap, zxid: z(1, 9) });
    for (let i = 0; i < 5; i++) {
      one.advance(INIT_LIMIT * TICK_MS - 1);
      one.learner.onSnapshotProgress();
    }
    expect(stopReason(one)).toBeUndefined();
    one.advance(INIT_LIMIT * TICK_MS);
    expect(stopReason(one)).toBe('the leader has said nothing for 20000 ms');
  });

  test('a leader that only pings and never gets its quorum is left', () => {
    const one = catchingUp();
    one.hear(newLeader(2));
    one.diskDoesAll();
    for (let tick = 0; tick < INIT_LIMIT + SYNC_LIMIT - 1; tick++) {
      one.advance(TICK_MS);
      one.hear(PING);
    }
    expect(stopReason(one)).toBeUndefined();
    one.advance(TICK_MS);
    expect(stopReason(one)).toBe('the leader has not brought a quorum together in time');
  });

  test('any packet shows that the leader lives, a ping too', () => {
    const one = synchronized();
    for (let i = 0; i < 20; i++) {
      one.advance(SYNC_LIMIT * TICK_MS - 1);
      one.hear(PING);
    }
    expect(stopReason(one)).toBeUndefined();
  });
});

describe('the end', () => {
  test('is told once, and nothing follows, whatever events still come', () => {
    const one = catchingUp();
    one.hear(proposal(z(1, 4)), newLeader(2));
    one.takeAsked();
    one.learner.onLinkClosed('ECONNRESET');
    expect(one.takeAsked()).toEqual([{ kind: 'stop', reason: 'the connection to the leader has ended: ECONNRESET' }]);
    one.learner.onLinkClosed('again');
    one.hear(UPTODATE, proposal(z(7, 7)), commit(z(9, 9)), PING);
    one.diskDoesAll();
    one.advance(1_000_000);
    one.learner.onTick();
    one.learner.onConnected();
    one.learner.onSnapshotReceived();
    one.learner.onSnapshotProgress();
    one.learner.onReady(onDisk(z(1, 3)));
    one.learner.onEpochDurable('currentEpoch', onDisk(2));
    expect(one.takeAsked()).toEqual([]);
    expect(one.learner.phase).toBe('stopped');
    expect(one.learner.nextDeadlineMs).toBe(Number.POSITIVE_INFINITY);
  });
});

/** What has gone wrong in servers before; the numbers are those of ZooKeeper's issues. */
describe('history does not repeat itself', () => {
  test('1282: an epoch that was acknowledged by NEWLEADER is on the disk, also without UPTODATE', () => {
    const one = catchingUp();
    one.hear(newLeader(2));
    expect(one.takeAcks()).toEqual([]);
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 0)]);
    one.restart();
    expect(one.disk.recover().currentEpoch).toBe(2);
  });

  test('3911, 4646: the history is durable before NEWLEADER is acknowledged', () => {
    const one = catchingUp();
    one.hear(proposal(z(1, 4)), commit(z(1, 4)), proposal(z(1, 5)), newLeader(2));
    expect(one.takeAcks()).toEqual([]);
    one.disk.sync(one.learner, 1);
    expect(one.takeAcks()).toEqual([]);
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 0), z(1, 5)]);
    one.restart();
    expect(one.disk.lastZxid).toBe(z(1, 5));
  });

  test('4643: the epoch is not written before the history is durable', () => {
    const one = catchingUp();
    one.hear(proposal(z(1, 4)), newLeader(2));
    expect(one.disk.epochWrites).toEqual([]);
    one.restart();
    expect(one.disk.recover()).toMatchObject({ currentEpoch: 1, lastZxid: z(1, 3) });
  });

  test('4685: no ACK of a proposal overtakes that of NEWLEADER, however fast the log is', () => {
    const one = catchingUp();
    one.hear(proposal(z(2, 1)));
    one.disk.sync(one.learner);
    one.hear(newLeader(2), proposal(z(2, 2)));
    one.disk.sync(one.learner);
    expect(one.takeSent()).toEqual([]);
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 0), z(2, 1), z(2, 2)]);
  });

  test('4394: a commit between NEWLEADER and UPTODATE of a proposal before NEWLEADER is a commit', () => {
    const one = catchingUp();
    one.hear(proposal(z(2, 1)), newLeader(2), commit(z(2, 1)));
    one.diskDoesAll();
    expect(one.learner.lastCommitted).toBe(z(2, 1));
    one.hear(UPTODATE);
    expect(one.learner.phase).toBe('broadcast');
  });

  test('4712: the log that reports its sync after the role is over makes no acknowledgement', () => {
    const one = synchronized();
    one.hear(proposal(z(2, 1)), commit(z(2, 1)));
    one.learner.onLinkClosed('closed by peer');
    one.takeAsked();
    one.disk.sync(one.learner);
    expect(one.takeAsked()).toEqual([]);
  });

  test('4925: txns of the synchronization take the same way as all others', () => {
    const one = catchingUp();
    one.hear(proposal(z(1, 4)), commit(z(1, 4)), newLeader(2));
    one.diskDoesAll();
    one.hear(UPTODATE, proposal(z(2, 1)), commit(z(2, 1)));
    one.diskDoesAll();
    const proposed = one.takeAsked().flatMap((asked) => (asked.kind === 'proposed' ? [asked.zxid] : []));
    expect(proposed).toEqual([z(1, 4), z(2, 1)]);
  });

  test('4882: a commit of what the log has not reported is not applied', () => {
    const one = synchronized();
    one.hear(proposal(z(2, 1)), proposal(z(2, 2)), commit(z(2, 2)));
    one.disk.sync(one.learner, 1);
    expect(committedBy(one)).toEqual([z(2, 1)]);
    expect(one.learner.lastCommitted).toBe(z(2, 1));
  });

  test('5094: a link lost behind TRUNC leaves nothing applied that is not in the log', () => {
    const one = make();
    one.learner.onConnected();
    one.hear(leaderInfo(2));
    one.diskDoesAll();
    one.hear({ type: PacketType.trunc, zxid: z(1, 2) });
    one.diskDoesAll();
    one.hear(proposal(z(2, 1)), commit(z(2, 1)), proposal(z(2, 2)), commit(z(2, 2)));
    one.disk.sync(one.learner, 1);
    one.learner.onLinkClosed('closed by peer');
    expect(committedBy(one)).toEqual([z(2, 1)]);
    one.restart();
    expect(one.disk.log).toEqual([z(1, 1), z(1, 2), z(2, 1)]);
  });

  test('3642, 2872: a link lost behind SNAP leaves the old history or the snapshot, and the next role says which', () => {
    const one = make();
    const takeSnapshot = (epoch: number) => {
      one.learner.onConnected();
      one.hear(leaderInfo(epoch));
      one.diskDoesAll();
      one.hear({ type: PacketType.snap, zxid: z(1, 9) });
      one.snapshotArrives();
    };
    const lastZxidSaid = () => one.takeSent().flatMap((p) => (p.type === PacketType.ackEpoch ? [p.zxid] : []));
    takeSnapshot(2);
    one.hear(proposal(z(1, 10)));
    one.restart();
    takeSnapshot(3);
    expect(lastZxidSaid()).toEqual([z(1, 3), z(1, 3)]);
    one.finishChange();
    one.restart();
    one.beginDiff(4);
    expect(lastZxidSaid()).toEqual([z(1, 9)]);
  });

  test('3104: NEWLEADER behind a snapshot and more waits for the last of it', () => {
    const one = make();
    one.learner.onConnected();
    one.hear(leaderInfo(2));
    one.diskDoesAll();
    one.hear({ type: PacketType.snap, zxid: z(1, 9) });
    one.snapshotArrives();
    one.hear(proposal(z(1, 10)), commit(z(1, 10)), newLeader(2));
    expect(one.learner.phase).toBe('preparing');
    one.finishChange();
    expect(one.disk.epochWrites).toEqual([]);
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 0)]);
    expect(one.disk).toMatchObject({ base: z(1, 9), log: [z(1, 10)] });
  });

  test('1154: a DIFF that does not begin where this server is is not taken', () => {
    const one = catchingUp();
    one.hear(proposal(z(1, 5)));
    expect(stopReason(one)).toMatch(/gap/);
    expect(one.disk.unsynced).toEqual([]);
  });

  test('2355: the zxid of DIFF, which has not arrived, changes nothing', () => {
    const one = make();
    one.learner.onConnected();
    one.hear(leaderInfo(2));
    one.diskDoesAll();
    one.hear({ type: PacketType.diff, zxid: z(1, 8) });
    one.diskDoesAll();
    expect(one.learner).toMatchObject({ lastProposed: z(1, 3), lastCommitted: z(1, 3) });
    one.learner.onLinkClosed('closed by peer');
    one.restart();
    expect(one.learner.lastProposed).toBe(z(1, 3));
  });

  test('1551: an observer loses no txn between snapshot and UPTODATE', () => {
    const one = make({ kind: 'observer' });
    one.learner.onConnected();
    one.hear(leaderInfo(2));
    one.diskDoesAll();
    one.hear({ type: PacketType.snap, zxid: z(1, 9) });
    one.snapshotArrives();
    one.hear(inform(z(1, 9)), inform(z(1, 10)));
    one.diskDoesAll();
    one.hear(inform(z(2, 1)), newLeader(2), inform(z(2, 2)));
    one.diskDoesAll();
    one.hear(inform(z(2, 3)), UPTODATE);
    one.diskDoesAll();
    expect(one.disk.log).toEqual([z(1, 10), z(2, 1), z(2, 2), z(2, 3)]);
    expect(one.learner).toMatchObject({ phase: 'broadcast', lastCommitted: z(2, 3) });
  });

  test('a snapshot that is older than the log leaves nothing of the log, and what follows it follows it (Camunda 6092)', () => {
    const one = make();
    one.learner.onConnected();
    one.hear(leaderInfo(2));
    one.diskDoesAll();
    one.hear({ type: PacketType.snap, zxid: z(1, 1) });
    one.snapshotArrives();
    one.diskDoesAll();
    expect(one.learner).toMatchObject({ lastProposed: z(1, 1), lastCommitted: z(1, 1) });
    one.hear(proposal(z(1, 1)), commit(z(1, 1)), proposal(z(2, 1)), commit(z(2, 1)), newLeader(2));
    one.diskDoesAll();
    expect(one.disk).toMatchObject({ base: z(1, 1), log: [z(2, 1)], currentEpoch: 2 });
    expect(one.takeAcks()).toEqual([z(2, 0)]);
  });
});

describe('a zxid that an Apache leader has skipped', () => {
  function appendedBy(one: TestLearner): readonly Zxid[] {
    return one.takeAsked().flatMap((asked) => (asked.kind === 'append' ? [asked.zxid] : []));
  }

  test('is logged as a placeholder in front of the next txn, and never acknowledged', () => {
    const one = synchronized();
    one.hear(proposal(z(2, 1)), proposal(z(2, 4)));
    const asked = one.takeAsked();
    expect(asked.filter(({ kind }) => kind === 'append')).toEqual(
      [1, 2, 3, 4].map((n) => ({ kind: 'append', zxid: z(2, n) })),
    );
    expect(asked).toContainEqual({ kind: 'filled', first: z(2, 2), last: z(2, 3) });
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 1), z(2, 4)]);
    one.hear(commit(z(2, 1)), commit(z(2, 4)));
    expect(committedBy(one)).toEqual([z(2, 1), z(2, 4)]);
  });

  test('may be the first of its epoch', () => {
    const one = synchronized();
    one.hear(proposal(z(2, 2)));
    expect(appendedBy(one)).toEqual([z(2, 1), z(2, 2)]);
  });

  test('may come while this server is synchronized, and is not acknowledged then either', () => {
    const one = catchingUp();
    one.hear(proposal(z(2, 2)), commit(z(2, 2)), proposal(z(2, 4)), newLeader(2), proposal(z(2, 6)));
    one.diskDoesAll();
    one.hear(UPTODATE);
    const asked = one.takeAsked();
    expect(asked.filter(({ kind }) => kind === 'append')).toEqual(
      [1, 2, 3, 4, 5, 6].map((n) => ({ kind: 'append', zxid: z(2, n) })),
    );
    const acks = asked.flatMap((a) => (a.kind === 'send' && a.packet.type === PacketType.ack ? [a.packet.zxid] : []));
    expect(acks).toEqual([z(2, 0), z(2, 4), z(2, 6), z(2, 0)]);
  });

  test('is a placeholder of an observer, too', () => {
    const one = synchronized({ kind: 'observer' });
    one.hear(inform(z(2, 3)));
    one.diskDoesAll();
    expect(one.disk.log.slice(3)).toEqual([z(2, 1), z(2, 2), z(2, 3)]);
    expect(committedBy(one)).toEqual([z(2, 3)]);
  });

  test.each([
    ['by a leader of ours', leaderInfo(2, 0x10000, Announcement.takesHandOver), [proposal(z(2, 2))]],
    ['in an older epoch, whose history may have a hole (2846)', leaderInfo(2), [proposal(z(1, 5))]],
    ['and too many more', leaderInfo(2), [proposal(z(2, 20_000))]],
  ])('ends the role when it is skipped %s', (_what, info, packets) => {
    const one = make();
    one.learner.onConnected();
    one.hear(info);
    one.diskDoesAll();
    one.hear({ type: PacketType.diff, zxid: z(1, 3) });
    one.diskDoesAll();
    one.takeAsked();
    one.hear(...packets);
    expect(stopReason(one)).toMatch(/its history has a gap/);
    expect(one.disk.unsynced).toEqual([]);
  });
});

describe("a history that cannot be brought to the leader's", () => {
  test('is told apart from other faults: there is a gap between the two, also where an epoch begins (2846)', () => {
    const gap = make();
    gap.learner.onConnected();
    gap.hear(leaderInfo(2, 0x10000, Announcement.takesHandOver));
    gap.diskDoesAll();
    gap.hear({ type: PacketType.diff, zxid: z(1, 3) });
    gap.diskDoesAll();
    gap.takeAsked();
    gap.hear(proposal(z(2, 2)));
    expect(stopReason(gap)).toMatch(/gap/);
    expect(gap.learner.hasFoundGap).toBe(true);
    const repeated = catchingUp();
    repeated.hear(proposal(z(1, 3)));
    expect(stopReason(repeated)).toMatch(/gap/);
    expect(repeated.learner.hasFoundGap).toBe(false);
  });

  test('is not counted by the next leader before that one has sent its own, if it may have what that one lacks', () => {
    const one = make({ isCounted: false });
    one.learner.onConnected();
    one.hear(leaderInfo(2));
    one.diskDoesAll();
    expect(one.takeSent().at(-1)).toMatchObject({ type: PacketType.ackEpoch, currentEpoch: -1 });
  });
});
