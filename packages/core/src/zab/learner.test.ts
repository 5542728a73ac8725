import { Announcement, announcedLease, PacketType, ZXID_NONE, ZXID_ZERO } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { onDisk } from '../base/durable.ts';
import {
  catchingUp,
  committedBy,
  makeLearner,
  PING,
  SYNC,
  stopReason,
  synchronized,
  UPTODATE,
  z,
} from '../testing/learner-stages.ts';
import {
  commit,
  INIT_LIMIT,
  inform,
  leaderInfo,
  newLeader,
  proposal,
  SYNC_LIMIT,
  TICK_MS,
} from '../testing/test-learner.ts';

describe('discovery', () => {
  test('a follower and an observer send their id, their promise and the version of their membership', () => {
    const follower = makeLearner({ acceptedEpoch: 4 });
    follower.learner.onConnected();
    const info = { zxid: z(4, 0), serverId: 2, protocolVersion: 0x10000, configVersion: ZXID_ZERO };
    expect(follower.takeSent()).toEqual([{ type: PacketType.followerInfo, ...info, announces: 14 }]);
    const observer = makeLearner({ acceptedEpoch: 4, kind: 'observer' });
    observer.learner.onConnected();
    expect(observer.takeSent()).toEqual([{ type: PacketType.observerInfo, ...info, announces: 12 }]);
  });

  test('ACKEPOCH of a later epoch leaves when acceptedEpoch is durable', () => {
    const one = makeLearner();
    one.learner.onConnected();
    one.takeAsked();
    one.receive(leaderInfo(2));
    expect(one.takeAsked()).toEqual([{ kind: 'write', name: 'acceptedEpoch', epoch: 2 }]);
    one.diskDoesAll();
    expect(one.takeSent()).toEqual([{ type: PacketType.ackEpoch, zxid: z(1, 3), currentEpoch: 1 }]);
  });

  test('an epoch that was accepted before is acknowledged at once, but not to be counted again', () => {
    const one = makeLearner({ acceptedEpoch: 2 });
    one.learner.onConnected();
    one.takeAsked();
    one.receive(leaderInfo(2));
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
    const one = makeLearner({ acceptedEpoch: 3 });
    one.learner.onConnected();
    one.receive(packet);
    expect(stopReason(one)).toBe(reason);
  });

  test('LEADERINFO names an epoch and nothing else', () => {
    for (const zxid of [z(2, 1), ZXID_NONE]) {
      const one = makeLearner();
      one.learner.onConnected();
      one.receive({ type: PacketType.leaderInfo, zxid, protocolVersion: 0x10000, announces: 0 });
      expect(stopReason(one)).toMatch(/which is no epoch/);
    }
  });

  test('pings before UPTODATE and unknown packets are ignored', () => {
    const one = makeLearner();
    one.learner.onConnected();
    const noise = [PING, { type: null, typeNumber: 99 }] as const;
    one.receive(...noise, leaderInfo(2), ...noise);
    one.diskDoesAll();
    one.receive(...noise, { type: PacketType.diff, zxid: z(1, 3) });
    one.diskDoesAll();
    one.receive(...noise, newLeader(2), ...noise);
    one.diskDoesAll();
    one.receive(...noise);
    expect(one.takeAsked().filter(({ kind }) => kind === 'pinged' || kind === 'stop')).toEqual([]);
    one.receive(UPTODATE, ...noise);
    expect(one.takeAsked().at(-1)).toEqual({ kind: 'pinged', zxid: PING.zxid });
  });
});

describe('broadcast', () => {
  test('a follower acknowledges each proposal once, when it is durable, also one that is committed already', () => {
    const one = synchronized();
    one.receive(proposal(z(2, 1)), proposal(z(2, 2)), commit(z(2, 1)));
    expect(one.takeAcks()).toEqual([]);
    one.disk.sync(one.learner, 1);
    expect(one.takeAcks()).toEqual([z(2, 1)]);
    one.receive(commit(z(2, 2)));
    one.disk.sync(one.learner);
    one.learner.onLogSynced(onDisk(z(2, 2)));
    expect(one.takeAcks()).toEqual([z(2, 2)]);
  });

  test('a log sync causes one ACK to our leader, and one per proposal to Apache’s', () => {
    for (const [announces, acks] of [
      [Announcement.takesHandOver, [z(2, 3)]],
      [0, [z(2, 1), z(2, 2), z(2, 3)]],
    ] as const) {
      const one = makeLearner();
      one.synchronize(2, leaderInfo(2, undefined, announces));
      one.takeAsked();
      one.receive(proposal(z(2, 1)), proposal(z(2, 2)), proposal(z(2, 3)));
      one.disk.sync(one.learner);
      expect(one.takeAcks()).toEqual(acks);
    }
  });

  test('an observer acknowledges nothing but the epoch', () => {
    const one = makeLearner({ kind: 'observer' });
    one.beginDiff(2);
    one.takeAsked();
    one.receive(proposal(z(1, 4)), commit(z(1, 4)), proposal(z(2, 1)), newLeader(2), inform(z(2, 2)));
    one.diskDoesAll();
    one.receive(UPTODATE, inform(z(2, 3)));
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 0), z(2, 0)]);
    expect(one.learner.lastCommitted).toBe(z(2, 3));
  });

  test('an observer that does not log reports commits at once and appends nothing', () => {
    const one = synchronized({ kind: 'observer', logsInforms: false });
    one.receive(inform(z(2, 1)));
    expect(one.takeAsked()).toEqual([
      { kind: 'proposed', zxid: z(2, 1) },
      { kind: 'committed', zxid: z(2, 1) },
    ]);
  });

  test('commits that activate a membership are handled like any other', () => {
    const one = synchronized();
    one.receive(proposal(z(2, 1)), { type: PacketType.commitAndActivate, zxid: z(2, 1), designatedLeader: 3 });
    one.diskDoesAll();
    expect(committedBy(one)).toEqual([z(2, 1)]);
  });

  test('a sync is answered behind everything that was committed before it, and not behind what comes later', () => {
    const one = synchronized();
    one.receive(SYNC);
    expect(one.takeAsked()).toEqual([{ kind: 'synced', count: 1 }]);
    one.receive(proposal(z(2, 1)), commit(z(2, 1)), SYNC, SYNC, proposal(z(2, 2)), commit(z(2, 2)), SYNC);
    one.takeAsked();
    one.disk.sync(one.learner, 1);
    expect(one.takeAsked().slice(1)).toEqual([
      { kind: 'committed', zxid: z(2, 1) },
      { kind: 'synced', count: 3 },
    ]);
    one.disk.sync(one.learner, 1);
    expect(one.takeAsked().at(-1)).toEqual({ kind: 'synced', count: 4 });
  });

  test('pings, revalidations and hand-overs are passed to the host', () => {
    const one = synchronized();
    one.receive(PING, { type: PacketType.revalidate, sessionId: 7n, isValid: false });
    one.receive({ type: PacketType.handOver, zxid: z(2, 0) });
    expect(one.takeAsked()).toEqual([
      { kind: 'pinged', zxid: PING.zxid },
      { kind: 'revalidated', sessionId: 7n, isValid: false },
      { kind: 'handed-over' },
    ]);
  });
});

describe('the lease', () => {
  const LEASE_MS = 4000;
  const leaderWith = (leaseMs: number) =>
    leaderInfo(2, undefined, Announcement.takesHandOver + announcedLease(leaseMs));

  test('counts from the ACK of NEWLEADER, once a ping behind UPTODATE shows that the leader still has its own', () => {
    const one = makeLearner({ leaseMs: LEASE_MS });
    one.beginDiff(2, leaderWith(LEASE_MS));
    one.receive(newLeader(2));
    one.diskDoesAll();
    const answeredMs = one.clock.nowMs;
    one.advance(100);
    one.receive(PING, UPTODATE, { type: PacketType.ping, zxid: ZXID_ZERO });
    expect(one.lease.untilMs).toBe(Number.NEGATIVE_INFINITY);
    one.receive(PING);
    expect(one.lease.untilMs).toBe(answeredMs + LEASE_MS);
  });

  test('is not held under a leader that gives another one', () => {
    for (const leaseMs of [0, LEASE_MS / 2]) {
      const one = makeLearner({ leaseMs: LEASE_MS });
      one.synchronize(2, leaderWith(leaseMs));
      expect(one.lease).toMatchObject({ isHeld: false, untilMs: Number.POSITIVE_INFINITY });
    }
  });
});

describe('time', () => {
  test('connecting may take initLimit ticks', () => {
    const one = makeLearner();
    one.advance(INIT_LIMIT * TICK_MS - 1);
    expect(stopReason(one)).toBeUndefined();
    one.advance(1);
    expect(stopReason(one)).toBe('the leader could not be reached in time');
  });

  test('the leader may be silent for initLimit ticks before UPTODATE and for syncLimit ticks after it', () => {
    const one = catchingUp();
    one.advance(INIT_LIMIT * TICK_MS - 1);
    one.receive(proposal(z(1, 4)));
    one.advance(INIT_LIMIT * TICK_MS - 1);
    one.receive(newLeader(2));
    one.diskDoesAll();
    one.advance(INIT_LIMIT * TICK_MS - 1);
    expect(stopReason(one)).toBeUndefined();
    one.receive(UPTODATE);
    one.advance(SYNC_LIMIT * TICK_MS - 1);
    expect(stopReason(one)).toBeUndefined();
    one.advance(1);
    expect(stopReason(one)).toBe('the leader has said nothing for 10000 ms');
  });

  test('while its own disk is busy the leader may be silent', () => {
    const one = makeLearner();
    one.learner.onConnected();
    one.receive(leaderInfo(2));
    expect(one.learner.nextDeadlineMs).toBe(Number.POSITIVE_INFINITY);
    one.diskDoesAll();
    one.receive({ type: PacketType.trunc, zxid: z(1, 2) });
    expect(one.learner.nextDeadlineMs).toBe(Number.POSITIVE_INFINITY);
    one.diskDoesAll();
    one.receive(proposal(z(1, 3)), newLeader(2), PING);
    expect(one.learner.nextDeadlineMs).toBe(Number.POSITIVE_INFINITY);
    one.diskDoesAll();
    expect(one.learner.nextDeadlineMs).toBe(one.clock.nowMs + INIT_LIMIT * TICK_MS);
  });

  test('a snapshot may take any time while bytes of it arrive', () => {
    const one = makeLearner();
    one.learner.onConnected();
    one.receive(leaderInfo(2));
    one.diskDoesAll();
    one.receive({ type: PacketType.snap, zxid: z(1, 9) });
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
    one.receive(newLeader(2));
    one.diskDoesAll();
    for (let tick = 0; tick < INIT_LIMIT + SYNC_LIMIT - 1; tick++) {
      one.advance(TICK_MS);
      one.receive(PING);
    }
    expect(stopReason(one)).toBeUndefined();
    one.advance(TICK_MS);
    expect(stopReason(one)).toBe('the leader has not brought a quorum together in time');
  });

  test('any packet shows that the leader is alive, even a ping', () => {
    const one = synchronized();
    for (let i = 0; i < 20; i++) {
      one.advance(SYNC_LIMIT * TICK_MS - 1);
      one.receive(PING);
    }
    expect(stopReason(one)).toBeUndefined();
  });
});

describe('the end', () => {
  test('is reported once, and no later event has an effect', () => {
    const one = catchingUp();
    one.receive(proposal(z(1, 4)), newLeader(2));
    one.takeAsked();
    one.learner.onLinkClosed('ECONNRESET');
    expect(one.takeAsked()).toEqual([{ kind: 'stop', reason: 'the connection to the leader has ended: ECONNRESET' }]);
    one.learner.onLinkClosed('again');
    one.receive(UPTODATE, proposal(z(7, 7)), commit(z(9, 9)), PING);
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
