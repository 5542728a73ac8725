import { Announcement, type LearnerInfoPacket, MAX_EPOCH, makeZxid, PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { EPOCHS_FAR, EPOCHS_NEAR } from '../election/plausible.ts';
import type { LeaderShape } from '../testing/leader-shape.ts';
import { TestLeader } from '../testing/test-leader.ts';

const OBSERVER: Partial<LearnerInfoPacket> = { type: PacketType.observerInfo };
const FIVE = { quorum: { voters: [1, 2, 3, 4, 5] } };
const DAMAGED = MAX_EPOCH - 1;

/** Server 3, in discovery, which has accepted epoch 1. A tick is a second, syncLimit five of them. */
function discovering(shape: Partial<LeaderShape> = {}): TestLeader {
  const test = new TestLeader(shape);
  test.start();
  return test;
}

function promise(
  test: TestLeader,
  learner: number,
  acceptedEpoch: number,
  rest: Partial<LearnerInfoPacket> = {},
): void {
  test.connect(learner);
  test.info(learner, acceptedEpoch, rest);
}

function chosen(test: TestLeader): readonly string[] {
  return test.said().filter((text) => text.startsWith('writes acceptedEpoch'));
}

describe('the choice of an epoch', () => {
  test('is later than the promise of a voter that is a little ahead', () => {
    const test = discovering();
    promise(test, 1, 1 + EPOCHS_NEAR);
    expect(chosen(test)).toEqual([`writes acceptedEpoch ${2 + EPOCHS_NEAR}`]);
  });

  test('does without a voter that is far ahead of all others', () => {
    const test = discovering();
    promise(test, 1, DAMAGED);
    expect(chosen(test)).toEqual([]);
    promise(test, 2, 1);
    expect(chosen(test)).toEqual(['writes acceptedEpoch 2']);
    test.disk();
    test.ackEpoch(2, '(1,5)');
    expect(test.said()).toContain('writes currentEpoch 2');
  });

  test('waits a tick for others before it believes a promise that is as far ahead as possible', () => {
    const test = discovering();
    promise(test, 1, 1 + EPOCHS_FAR);
    test.advance(999);
    expect(chosen(test)).toEqual([]);
    test.advance(1);
    expect(chosen(test)).toEqual([`writes acceptedEpoch ${2 + EPOCHS_FAR}`]);
  });

  test('ignores a promise that is farther ahead', () => {
    const test = discovering();
    promise(test, 1, 2 + EPOCHS_FAR);
    test.advance(10_000);
    expect(chosen(test)).toEqual([]);
    expect(test.leader.phase).toBe('over');
  });

  test('believes the promise of two voters, however far ahead, when it is needed; one of them may be gone', () => {
    const test = discovering(FIVE);
    promise(test, 1, 500_000);
    test.disconnect(1);
    promise(test, 2, 500_003);
    promise(test, 4, 1);
    test.advance(999);
    expect(chosen(test)).toEqual([]);
    test.advance(1);
    expect(chosen(test)).toEqual(['writes acceptedEpoch 500004']);
  });

  test('is raised a little by observers and non-members, and never by more', () => {
    const test = discovering();
    promise(test, 7, 1 + EPOCHS_NEAR, OBSERVER);
    promise(test, 8, DAMAGED);
    promise(test, 9, MAX_EPOCH, OBSERVER);
    promise(test, 2, 1);
    expect(chosen(test)).toEqual([`writes acceptedEpoch ${2 + EPOCHS_NEAR}`]);
  });

  test('believes this server’s promise if its history confirms it, whatever the others have promised', () => {
    const test = discovering({ history: '(90000,1)..(90000,5)', currentEpoch: 90_000, acceptedEpoch: 90_001 });
    promise(test, 1, 1);
    expect(chosen(test)).toEqual(['writes acceptedEpoch 90002']);
  });

  test('believes this server’s promise if another one confirms it', () => {
    const test = discovering({ acceptedEpoch: 200_000 });
    promise(test, 1, 199_990);
    expect(chosen(test)).toEqual(['writes acceptedEpoch 200001']);
  });

  test('is not made by a server whose own promise nothing confirms: it no longer stands for election', () => {
    const test = discovering({ acceptedEpoch: DAMAGED });
    promise(test, 1, 1);
    test.advance(999);
    expect(chosen(test)).toEqual([]);
    test.advance(1);
    const said = test.said();
    expect(said).toEqual([expect.stringMatching(/^steps down: this server has accepted epoch 2097150, but /)]);
    expect(said[0]).toMatch(/write 1 into the file/);
    expect(test.leader.unfitness).toMatch(/acceptedEpoch damaged/);
  });

  test('is not made after the last epoch', () => {
    const test = discovering({ acceptedEpoch: MAX_EPOCH });
    promise(test, 1, MAX_EPOCH);
    expect(test.said()).toEqual([expect.stringMatching(/^steps down: .* "The end of the epochs"/)]);
    expect(test.leader.unfitness).not.toBeNull();
  });

  test('needs no confirmation of the promise of a server that is a quorum by itself', () => {
    const test = discovering({ serverId: 1, quorum: { voters: [1] }, acceptedEpoch: 200_000 });
    expect(chosen(test)).toEqual(['writes acceptedEpoch 200001']);
  });
});

describe('a voter that has promised a later epoch than that of an established leader', () => {
  /** Has led epoch 2 for `ledMs`; server 1 follows. */
  function leading(ledMs: number): TestLeader {
    const test = new TestLeader().establish([1]);
    test.advance(ledMs, [1]);
    test.take();
    return test;
  }

  test('is taken in by the next epoch, but not at once', () => {
    const test = leading(0);
    promise(test, 2, 3);
    expect(test.said()).toEqual(['→ 2 LEADERINFO (2,0)']);
    test.disconnect(2);
    test.advance(5000, [1]);
    test.take();
    // The leader does not wait for a non-member.
    promise(test, 8, 3);
    expect(test.said()).toEqual(['→ 8 LEADERINFO (2,0)']);
    promise(test, 2, 3);
    expect(test.said().at(-1)).toBe('writes acceptedEpoch 3');
    test.disk();
    // It has promised as much as that voter: any quorum of the next leader knows of epoch 3.
    expect(test.said().at(-1)).toMatch(/^steps down: learner 2 has accepted epoch 3 and cannot follow in epoch 2/);
  });

  test('waits syncLimit ticks for each epoch by which it is ahead', () => {
    const test = leading(19_999);
    promise(test, 2, 6);
    expect(chosen(test)).toEqual([]);
    test.disconnect(2);
    test.advance(1, [1]);
    promise(test, 2, 6);
    expect(chosen(test)).toEqual(['writes acceptedEpoch 6']);
  });

  test.each([DAMAGED, MAX_EPOCH, 3 + EPOCHS_FAR])('stays out with epoch %d, however long this one leads', (epoch) => {
    const test = leading(0);
    promise(test, 2, epoch);
    const said = test.said();
    expect(said).toHaveLength(3);
    expect(said[0]).toBe('→ 2 LEADERINFO (2,0)');
    expect(said[1]).toMatch(/^warns: learner 2 has accepted epoch \d+, .* write 2 into the file/);
    expect(said[2]).toMatch(/^closes 2: learner 2 has accepted epoch/);
  });

  test('is no reason to make way when its history is of a later epoch, or unknown', () => {
    const test = leading(60_000);
    test.peerVotes.set(2, 3);
    promise(test, 2, 3);
    test.disconnect(2);
    test.peerVotes.delete(2);
    promise(test, 2, 3);
    expect(chosen(test)).toEqual([]);
    test.disconnect(2);
    // A voter with a later history that announces this would not have connected.
    promise(test, 2, 3, { announces: Announcement.refusesOlderEpochs });
    expect(chosen(test)).toEqual(['writes acceptedEpoch 3']);
  });

  test('may follow in the last epoch', () => {
    const test = new TestLeader({ acceptedEpoch: DAMAGED }).establish([1], { zxid: makeZxid(DAMAGED, 0) });
    expect(test.leader.epoch).toBe(MAX_EPOCH);
    promise(test, 2, MAX_EPOCH);
    expect(test.said()).toEqual([`→ 2 LEADERINFO (${MAX_EPOCH},0)`]);
  });
});

describe('a voter that stands for election with a later history than the leader’s epoch', () => {
  test('makes the leader step down, and promise nothing, but not within syncLimit ticks', () => {
    const test = new TestLeader().establish([1]);
    test.leader.onOutranked(2, 3);
    expect(test.said()).toEqual([]);
    test.advance(5000, [1]);
    test.take();
    test.leader.onOutranked(2, 2);
    expect(test.said()).toEqual([]);
    test.leader.onOutranked(2, 3);
    expect(test.said()).toEqual([
      expect.stringMatching(/^warns: server 2 has a history of epoch 3, later than epoch 2 of this leader/),
      expect.stringMatching(/^steps down: server 2 has a history of epoch 3/),
    ]);
  });
});
