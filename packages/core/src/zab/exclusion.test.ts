import { makeZxid, PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { EPOCHS_FAR, EPOCHS_NEAR } from '../election/plausible.ts';
import { leaderInfo, TestLearner, type TestLearnerShape } from '../testing/test-learner.ts';

/** A server with txns of epochs 1 and 3, which has promised and adopted epoch 3. */
function make(shape: Partial<TestLearnerShape> = {}): TestLearner {
  const log = [makeZxid(1, 1), makeZxid(3, 1), makeZxid(3, 2)];
  return new TestLearner({ log, acceptedEpoch: 3, currentEpoch: 3, ...shape });
}

function stopReason(one: TestLearner): string | undefined {
  return one.takeAsked().flatMap((asked) => (asked.kind === 'stop' ? [asked.reason] : []))[0];
}

describe('a learner whose history is of a later epoch than its leader’s', () => {
  test.each(['follower', 'observer'] as const)('sends it nothing as a %s, and keeps everything', (kind) => {
    const one = make({ kind, leaderHistoryEpoch: 2 });
    one.learner.onConnected();
    expect(one.takeAsked()).toEqual([{ kind: 'stop', reason: 'this server stays out' }]);
    expect(one.learner.exclusion).toMatch(/keeps its files: its leader is of epoch 2, .* of epoch 3/);
    expect(one.disk.acceptedEpoch).toBe(3);
  });

  test.each(['snap', 'trunc'] as const)('accepts a %s from a leader whose history is of its own epoch', (name) => {
    const one = make({ leaderHistoryEpoch: 3 });
    one.learner.onConnected();
    one.receive(leaderInfo(4));
    one.diskDoesAll();
    one.receive({ type: PacketType[name], zxid: name === 'snap' ? makeZxid(1, 1) : makeZxid(3, 1) });
    if (name === 'snap') one.snapshotArrives();
    one.diskDoesAll();
    expect(one.learner.phase).toBe('catching-up');
    expect(one.learner.exclusion).toBeNull();
  });
});

describe('a learner that has promised a later epoch than its leader’s', () => {
  test.each([
    [3 + EPOCHS_NEAR, null],
    [4 + EPOCHS_NEAR, /has accepted epoch 20, and its leader is of epoch 3\. .* write 3 into the file/],
  ])('reports it when waiting does not help: epoch %d', (acceptedEpoch, exclusion) => {
    const one = make({ acceptedEpoch });
    one.learner.onConnected();
    one.receive(leaderInfo(3));
    expect(stopReason(one)).toBe(`the leader is of epoch 3, but this server has accepted epoch ${acceptedEpoch}`);
    if (exclusion === null) expect(one.learner.exclusion).toBeNull();
    else expect(one.learner.exclusion).toMatch(exclusion);
  });

  test('reports it when the leader does not even send its epoch', () => {
    const one = make({ acceptedEpoch: 2_000_000 });
    one.learner.onConnected();
    one.learner.onLinkClosed('closed by peer');
    expect(one.learner.exclusion).toMatch(/has accepted epoch 2000000, and its leader is of epoch 3/);
  });
});

describe('a promise that nothing confirms', () => {
  test.each([
    ['withheld from a leader that would believe it', 1_000_000, 3, false],
    ['sent to one that checks promises', 1_000_000, 3, true],
    ['sent to one whose epoch is as late', 1_000_000, 1_000_000, false],
    ['sent when elections can have advanced that far', 3 + EPOCHS_FAR, 3, false],
  ])('is %s', (_what, acceptedEpoch, leaderHistoryEpoch, leaderChecksPromises) => {
    const one = make({ acceptedEpoch, leaderHistoryEpoch, leaderChecksPromises });
    one.learner.onConnected();
    const isKept = one.learner.exclusion !== null;
    expect(isKept).toBe(!leaderChecksPromises && acceptedEpoch - leaderHistoryEpoch > EPOCHS_FAR);
    expect(one.takeSent()).toHaveLength(isKept ? 0 : 1);
  });
});

describe('LEADERINFO', () => {
  test('is believed up to the epoch that elections can have reached', () => {
    const one = make();
    one.learner.onConnected();
    one.receive(leaderInfo(3 + EPOCHS_FAR));
    one.diskDoesAll();
    expect(one.disk.acceptedEpoch).toBe(3 + EPOCHS_FAR);
  });

  test('is not accepted when its epoch is too far ahead', () => {
    const one = make();
    one.learner.onConnected();
    one.receive(leaderInfo(4 + EPOCHS_FAR));
    expect(stopReason(one)).toMatch(/Is the file acceptedEpoch of the leader damaged\?/);
    expect(one.learner.exclusion).toMatch(/^this server stays out: the leader is of epoch 65540/);
    expect(one.disk.acceptedEpoch).toBe(3);
  });

  test('is believed by a new server when a quorum reports that epoch of the leader', () => {
    const one = new TestLearner({ leaderHistoryEpoch: 900_000 });
    one.learner.onConnected();
    one.receive(leaderInfo(900_000));
    one.diskDoesAll();
    expect(one.disk.acceptedEpoch).toBe(900_000);
  });
});
