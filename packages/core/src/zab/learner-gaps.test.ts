import { Announcement, PacketType, type Zxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import {
  catchingUp,
  committedBy,
  makeLearner,
  stopReason,
  synchronized,
  UPTODATE,
  z,
} from '../testing/learner-stages.ts';
import { commit, inform, leaderInfo, newLeader, proposal, type TestLearner } from '../testing/test-learner.ts';

describe('a zxid that an Apache leader has skipped', () => {
  function appendedBy(one: TestLearner): readonly Zxid[] {
    return one.takeAsked().flatMap((asked) => (asked.kind === 'append' ? [asked.zxid] : []));
  }

  test('is logged as a placeholder in front of the next txn, and never acknowledged', () => {
    const one = synchronized();
    one.receive(proposal(z(2, 1)), proposal(z(2, 4)));
    const asked = one.takeAsked();
    expect(asked.filter(({ kind }) => kind === 'append')).toEqual(
      [1, 2, 3, 4].map((n) => ({ kind: 'append', zxid: z(2, n) })),
    );
    expect(asked).toContainEqual({ kind: 'filled', first: z(2, 2), last: z(2, 3) });
    one.diskDoesAll();
    expect(one.takeAcks()).toEqual([z(2, 1), z(2, 4)]);
    one.receive(commit(z(2, 1)), commit(z(2, 4)));
    expect(committedBy(one)).toEqual([z(2, 1), z(2, 4)]);
  });

  test('may be the first of its epoch', () => {
    const one = synchronized();
    one.receive(proposal(z(2, 2)));
    expect(appendedBy(one)).toEqual([z(2, 1), z(2, 2)]);
  });

  test('may come while this server is synchronized, and is not acknowledged then either', () => {
    const one = catchingUp();
    one.receive(proposal(z(2, 2)), commit(z(2, 2)), proposal(z(2, 4)), newLeader(2), proposal(z(2, 6)));
    one.diskDoesAll();
    one.receive(UPTODATE);
    const asked = one.takeAsked();
    expect(asked.filter(({ kind }) => kind === 'append')).toEqual(
      [1, 2, 3, 4, 5, 6].map((n) => ({ kind: 'append', zxid: z(2, n) })),
    );
    const acks = asked.flatMap((a) => (a.kind === 'send' && a.packet.type === PacketType.ack ? [a.packet.zxid] : []));
    expect(acks).toEqual([z(2, 0), z(2, 4), z(2, 6), z(2, 0)]);
  });

  test('is a placeholder of an observer, too', () => {
    const one = synchronized({ kind: 'observer' });
    one.receive(inform(z(2, 3)));
    one.diskDoesAll();
    expect(one.disk.log.slice(3)).toEqual([z(2, 1), z(2, 2), z(2, 3)]);
    expect(committedBy(one)).toEqual([z(2, 3)]);
  });

  test.each([
    ['by a leader of ours', leaderInfo(2, 0x10000, Announcement.takesHandOver), [proposal(z(2, 2))]],
    ['in an older epoch, whose history may have a hole (2846)', leaderInfo(2), [proposal(z(1, 5))]],
    ['and too many more', leaderInfo(2), [proposal(z(2, 20_000))]],
  ])('ends the role when it is skipped %s', (_what, info, packets) => {
    const one = makeLearner();
    one.learner.onConnected();
    one.receive(info);
    one.diskDoesAll();
    one.receive({ type: PacketType.diff, zxid: z(1, 3) });
    one.diskDoesAll();
    one.takeAsked();
    one.receive(...packets);
    expect(stopReason(one)).toMatch(/its history has a gap/);
    expect(one.disk.unsynced).toEqual([]);
  });
});

describe("a history that cannot be synchronized with the leader's", () => {
  test('is distinguished from other faults: there is a gap, possibly where an epoch begins (2846)', () => {
    const gap = makeLearner();
    gap.learner.onConnected();
    gap.receive(leaderInfo(2, 0x10000, Announcement.takesHandOver));
    gap.diskDoesAll();
    gap.receive({ type: PacketType.diff, zxid: z(1, 3) });
    gap.diskDoesAll();
    gap.takeAsked();
    gap.receive(proposal(z(2, 2)));
    expect(stopReason(gap)).toMatch(/gap/);
    expect(gap.learner.hasFoundGap).toBe(true);
    const repeated = catchingUp();
    repeated.receive(proposal(z(1, 3)));
    expect(stopReason(repeated)).toMatch(/gap/);
    expect(repeated.learner.hasFoundGap).toBe(false);
  });

  test('does not count for the next leader until synchronized, if it may have txns that the leader lacks', () => {
    const one = makeLearner({ isCounted: false });
    one.learner.onConnected();
    one.receive(leaderInfo(2));
    one.diskDoesAll();
    expect(one.takeSent().at(-1)).toMatchObject({ type: PacketType.ackEpoch, currentEpoch: -1 });
  });
});
