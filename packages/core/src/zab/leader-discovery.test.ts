import { makeZxid, PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { broadcasting, FIVE, OBSERVER, saidTo } from '../testing/broadcasting-leader.ts';
import { TestLeader } from '../testing/test-leader.ts';

describe('discovery', () => {
  test.each([
    { own: 7, other: 7, epoch: 8 },
    { own: 7, other: 1, epoch: 8 },
    { own: 1, other: 7, epoch: 8 },
  ])(
    'the epoch is later than all that a quorum has accepted, this server included (ZOOKEEPER-1343): $own here, $other there',
    ({ own, other, epoch }) => {
      const test = new TestLeader({ acceptedEpoch: own });
      test.start();
      test.connect(1);
      test.info(1, other);
      expect(test.said()).toEqual([`writes acceptedEpoch ${epoch}`]);
    },
  );

  test('an epoch is sent to learners only once it is durable here (ZOOKEEPER-335, 1291)', () => {
    const test = new TestLeader();
    test.start();
    test.connect(1);
    test.info(1);
    test.connect(2);
    test.info(2);
    expect(test.said()).toEqual(['writes acceptedEpoch 2']);
    test.disk();
    expect(test.said()).toEqual(['→ 1 LEADERINFO (2,0)', '→ 2 LEADERINFO (2,0)']);
  });

  test('observers and non-members raise the epoch but do not count (ZOOKEEPER-764)', () => {
    const test = new TestLeader();
    test.start();
    test.connect(7);
    test.info(7, 5, OBSERVER);
    test.connect(8);
    test.info(8, 9);
    // A listed voter that connects as an observer does not vote.
    test.connect(2);
    test.info(2, 3, OBSERVER);
    expect(test.said()).toEqual([]);
    test.connect(1);
    test.info(1, 1);
    expect(test.said()).toEqual(['writes acceptedEpoch 10']);
  });

  test('a voter that has disconnected does not count', () => {
    const test = new TestLeader(FIVE);
    test.start();
    test.connect(1);
    test.info(1);
    test.disconnect(1);
    test.connect(2);
    test.info(2);
    expect(test.said()).toEqual([]);
  });

  test('this server needs no learner if it is a quorum by itself', () => {
    const test = new TestLeader({ serverId: 1, quorum: { voters: [1] } });
    test.start();
    test.disk();
    expect(test.said()).toEqual(['writes acceptedEpoch 2', 'writes currentEpoch 2', 'established epoch 2 with (1,5)']);
  });

  test.each([
    ['a newer configuration', { configVersion: makeZxid(0, 6) }, /configuration 6, which is newer than 5/],
    ['a protocol from before 3.4', { protocolVersion: 0xffff }, /older than release 3.4/],
    ['no id', { serverId: null }, /does not say which server it is/],
    ['the id that owns sessions of this leader', { serverId: -2 }, /does not say which server it is/],
    ['the id of the leader', { serverId: 3 }, /says that it is server 3/],
  ])('a learner with %s is refused', (_what, info, reason) => {
    const test = new TestLeader({ configText: 'version=5' });
    test.start();
    test.connect(1);
    test.info(1, 1, info);
    expect(test.said()).toEqual([expect.stringMatching(reason)]);
    // And it did not count.
    expect(test.leader.epoch).toBe(-1);
  });

  test('a learner with an older configuration is admitted', () => {
    const test = new TestLeader({ configText: 'version=5' });
    test.start();
    test.connect(1);
    test.info(1, 1, { configVersion: makeZxid(0, 4) });
    test.connect(2);
    test.info(2, 1, { configVersion: null });
    expect(test.said()).toEqual(['writes acceptedEpoch 2']);
  });

  test.each([
    ['ACK', { type: PacketType.ack, zxid: makeZxid(2, 0) }],
    ['ACKEPOCH', { type: PacketType.ackEpoch, zxid: makeZxid(1, 5), currentEpoch: 1 }],
    ['PING', { type: PacketType.ping, zxid: makeZxid(1, 5), sessions: [] }],
    ['REVALIDATE', { type: PacketType.revalidate, sessionId: 1n, timeoutMs: 1 }],
    ['an unknown packet', { type: null, typeNumber: 77 }],
  ] as const)('a learner that begins with %s is closed', (_what, packet) => {
    const test = new TestLeader();
    test.start();
    test.connect(1);
    test.packet(1, packet);
    expect(test.said()).toEqual([expect.stringMatching(/^closes 1: /)]);
  });

  test('a learner that identifies itself twice is closed', () => {
    const test = broadcasting();
    test.info(1);
    expect(test.said()).toEqual(['closes 1: learner 1 identifies itself twice']);
  });
});

describe('the quorum of ACKEPOCHs', () => {
  test('an ACKEPOCH of −1 is neither checked nor counted', () => {
    const test = new TestLeader();
    test.start();
    test.connect(1);
    test.info(1);
    test.disk();
    test.take();
    test.ackEpoch(1, '(1,9)', -1);
    expect(test.said()).toEqual([]);
    test.connect(2);
    test.info(2);
    test.ackEpoch(2, '(1,5)');
    expect(test.said()).toEqual([
      '→ 2 LEADERINFO (2,0)',
      'writes currentEpoch 2',
      '→ 1 TRUNC (1,5)',
      '→ 1 NEWLEADER (2,0)',
      '→ 2 DIFF (1,5)',
      '→ 2 NEWLEADER (2,0)',
    ]);
  });

  test.each([
    ['zxid', '(1,6)', 1],
    ['epoch', '(1,2)', 2],
  ])('a learner with a later %s is closed, and only that one', (_what, zxid, epoch) => {
    const test = new TestLeader();
    test.start();
    for (const id of [1, 2]) test.connect(id);
    for (const id of [1, 2]) test.info(id);
    test.disk();
    test.take();
    test.ackEpoch(1, zxid, epoch);
    expect(test.said()).toEqual([expect.stringMatching(/^closes 1: learner 1 has a later history/)]);
    test.ackEpoch(2, '(1,5)');
    expect(test.said()[0]).toBe('writes currentEpoch 2');
  });

  test('a server whose data cannot be trusted does not count, and is sent a snapshot', () => {
    const test = new TestLeader();
    test.start();
    test.connect(1);
    test.info(1);
    test.disk();
    test.take();
    test.ackEpoch(1, '−1', 0);
    expect(test.said()).toEqual([]);
    test.join(2);
    expect(test.said()).toContain('→ 1 SNAP');
  });

  test('non-members and observers do not count', () => {
    const test = new TestLeader();
    test.start();
    test.connect(1);
    test.info(1);
    test.disk();
    for (const [id, info] of [
      [7, OBSERVER],
      [8, {}],
    ] as const) {
      test.connect(id);
      test.info(id, 1, info);
      test.ackEpoch(id, '(1,5)');
    }
    expect(test.said().filter((text) => text.startsWith('writes'))).toEqual(['writes acceptedEpoch 2']);
  });

  test('a voter that was counted may connect again: its promise holds', () => {
    const test = new TestLeader(FIVE);
    test.start();
    for (const id of [1, 2]) test.connect(id);
    for (const id of [1, 2]) test.info(id);
    test.disk();
    test.ackEpoch(1, '(1,5)');
    test.disconnect(1);
    test.connect(1);
    test.info(1, 2);
    test.ackEpoch(1, '(1,5)', -1);
    test.take();
    test.ackEpoch(2, '(1,5)');
    expect(test.said()[0]).toBe('writes currentEpoch 2');
  });

  test('an unexpected ACKEPOCH ends the connection', () => {
    const test = broadcasting();
    test.ackEpoch(1, '(1,5)');
    expect(test.said()).toEqual(['closes 1: learner 1 sends an unexpected ACKEPOCH']);
  });
});

describe('the quorum of NEWLEADER', () => {
  test('this server counts once its currentEpoch is durable (ZOOKEEPER-1192)', () => {
    const test = new TestLeader();
    test.start();
    test.connect(1);
    test.info(1);
    test.disk();
    test.ackEpoch(1, '(1,5)');
    test.ack(1, '(2,0)');
    expect(test.said()).not.toContain('→ 1 UPTODATE');
    test.disk();
    expect(test.said()).toEqual(['established epoch 2 with (1,5)', '→ 1 UPTODATE']);
  });

  test('without a quorum nothing is reported as committed, even if it could be (ZOOKEEPER-790)', () => {
    const test = new TestLeader(FIVE);
    test.start();
    for (const id of [1, 2]) test.connect(id);
    for (const id of [1, 2]) test.info(id);
    test.disk();
    for (const id of [1, 2]) test.ackEpoch(id, '(1,5)');
    test.disk();
    test.ack(1, '(2,0)');
    test.advance(10_000);
    const said = test.said();
    expect(said.filter((text) => /established|committed|UPTODATE/.test(text))).toEqual([]);
    expect(said.at(-1)).toMatch(/^steps down: .*NEWLEADER/);
  });

  test('ACKs that come before that of NEWLEADER are remembered (ZOOKEEPER-4685)', () => {
    const test = broadcasting([1, 2], FIVE);
    test.propose(1);
    test.disk();
    test.disconnect(2);
    test.connect(2);
    test.info(2, 2);
    test.ackEpoch(2, '(1,5)');
    test.take();
    // A follower of release 3.8.0: its log task is faster than the one that acknowledges NEWLEADER.
    test.ack(2, '(2,1)');
    expect(test.said()).toEqual([]);
    test.ack(1, '(2,1)');
    expect(test.said()).toEqual([]);
    test.ack(2, '(2,0)');
    expect(test.said()).toEqual(['→ 2 UPTODATE', '→ 1 COMMIT (2,1)', '→ 2 COMMIT (2,1)', 'committed (2,1)']);
  });

  test('NEWLEADER must have been sent before it is acknowledged', () => {
    const test = broadcasting();
    test.connect(8);
    test.info(8);
    test.ack(8, '(2,0)');
    expect(test.said().at(-1)).toMatch(/^closes 8: .*was not sent/);
  });

  test('the second ACK of (epoch, 0), which follows UPTODATE, means nothing', () => {
    const test = broadcasting();
    test.ack(1, '(2,0)');
    test.ack(1, '(1,0)');
    expect(test.said()).toEqual([]);
  });

  test('no commit lies between NEWLEADER and UPTODATE (ZOOKEEPER-3023, 4394)', () => {
    const test = broadcasting([2]);
    test.connect(1);
    test.info(1, 2);
    test.propose(2);
    test.ackEpoch(1, '(1,4)');
    test.ack(2, '(2,1)');
    test.disk();
    test.propose(1);
    test.ack(2, '(2,3)');
    test.disk();
    test.ack(1, '(2,0)');
    expect(saidTo(test, 1)).toEqual([
      'LEADERINFO (2,0)',
      'DIFF (1,5)',
      'PROPOSAL (1,5)',
      'COMMIT (1,5)',
      'PROPOSAL (2,1)',
      'PROPOSAL (2,2)',
      'NEWLEADER (2,0)',
      'PROPOSAL (2,3)',
      'UPTODATE',
      'COMMIT (2,1)',
      'COMMIT (2,2)',
      'COMMIT (2,3)',
    ]);
  });
});
