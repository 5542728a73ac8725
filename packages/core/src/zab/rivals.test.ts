import { Announcement, PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { TestLeader } from '../testing/test-leader.ts';

const FIVE = { quorum: { voters: [1, 2, 3, 4, 5] } };
/** Another connection that claims to be server 1, by its name in these tests. */
const RIVAL = 10;
const AS_ONE = { serverId: 1 };

/** Server 3 leads epoch 2; servers 1 and 2 follow. A tick is a second. */
function serving(): TestLeader {
  return new TestLeader(FIVE).establish([1, 2]);
}

function knock(test: TestLeader, acceptedEpoch = 1): void {
  test.connect(RIVAL);
  test.info(RIVAL, acceptedEpoch, AS_ONE);
}

function closings(test: TestLeader): readonly string[] {
  return test.said().filter((text) => text.startsWith('closes'));
}

describe('a second connection that claims the id of a learner', () => {
  test('is refused when the standing connection shows that it is alive', () => {
    const test = serving();
    test.advance(200, [1, 2]);
    test.take();
    knock(test);
    expect(test.said()).toEqual([]);
    test.advance(1500, [1, 2]);
    expect(closings(test)).toEqual([
      'closes 10: learner 1 is connected already, and that connection is alive: is its id used twice?',
    ]);
    // The standing connection is unaffected.
    test.propose(1);
    test.disk();
    test.take();
    test.ack(1, '(2,1)');
    test.ack(2, '(2,1)');
    expect(test.said()).toContain('→ 1 COMMIT (2,1)');
  });

  test('does not raise the epoch before it is admitted', () => {
    const test = serving();
    test.advance(60_000, [1, 2]);
    test.take();
    knock(test, 5);
    test.advance(2000, [1, 2]);
    expect(test.said().filter((text) => !text.includes('PING'))).toEqual([expect.stringMatching(/^closes 10/)]);
  });

  test('is admitted at once when the standing connection has not answered for a tick', () => {
    const test = serving();
    test.advance(1200, [2]);
    test.take();
    knock(test);
    expect(test.said()).toEqual([
      'closes 1: learner 1 has connected again, and its old connection is silent',
      '→ 10 LEADERINFO (2,0)',
    ]);
  });

  test('is admitted after a tick in which the standing connection gives no sign of life', () => {
    const test = serving();
    test.advance(500, [1, 2]);
    test.take();
    knock(test);
    test.advance(999, [2]);
    expect(closings(test)).toEqual([]);
    test.advance(501, [2]);
    expect(test.said()).toContain('→ 10 LEADERINFO (2,0)');
  });

  test('is admitted at once when the standing connection closes', () => {
    const test = serving();
    knock(test);
    test.take();
    test.disconnect(1);
    expect(test.said()).toEqual(['→ 10 LEADERINFO (2,0)']);
  });

  test('does not replace a learner that is still catching up, which may be silent for longer', () => {
    const test = new TestLeader(FIVE);
    test.start();
    test.connect(1);
    test.info(1);
    test.advance(1500);
    knock(test);
    test.connect(2);
    test.info(2);
    expect(test.said()).toEqual(['writes acceptedEpoch 2']);
    test.disk();
    test.ackEpoch(1, '(1,5)');
    test.advance(1000);
    expect(closings(test)).toEqual([expect.stringMatching(/^closes 10: learner 1 is connected already/)]);
  });

  test('does not count beside it, and replaces it when it becomes silent', () => {
    const test = new TestLeader(FIVE);
    test.start();
    test.connect(1);
    test.info(1);
    knock(test);
    expect(test.said()).toEqual([]);
    test.advance(1000);
    expect(closings(test)).toEqual(['closes 1: learner 1 has connected again, and its old connection is silent']);
    test.connect(2);
    test.info(2);
    expect(test.said()).toEqual(['writes acceptedEpoch 2']);
  });

  test('waits behind an earlier rival', () => {
    const test = serving();
    knock(test);
    test.connect(11);
    test.info(11, 1, AS_ONE);
    test.take();
    test.disconnect(1);
    expect(test.said()).toEqual(['→ 10 LEADERINFO (2,0)']);
    test.ackEpoch(RIVAL, '(1,5)');
    test.advance(1000, [2]);
    expect(closings(test)).toEqual([expect.stringMatching(/^closes 11: learner 1 is connected already/)]);
  });

  test.each([
    ['says once more who it is', { type: PacketType.ping, zxid: 0, sessions: [] }, /must be FOLLOWERINFO/],
    ['identifies itself again', null, /identifies itself twice/],
  ] as const)('is closed when it %s before it is admitted', (_what, packet, reason) => {
    const test = serving();
    knock(test);
    test.take();
    if (packet === null) test.info(RIVAL, 1, { ...AS_ONE, announces: Announcement.keepsLog });
    else test.packet(RIVAL, { ...packet, zxid: test.leader.lastProposed });
    expect(test.said()).toEqual([expect.stringMatching(reason)]);
    test.disconnect(1);
    expect(test.said()).toEqual([]);
  });

  test('may close before it is admitted', () => {
    const test = serving();
    knock(test);
    test.disconnect(RIVAL);
    test.take();
    test.disconnect(1);
    expect(test.said()).toEqual([]);
  });
});
