import {
  Announcement,
  announcedLease,
  type LearnerInfoPacket,
  MAX_COUNTER,
  makeZxid,
  OpCode,
  PacketType,
} from '@meerkat/protocol';

import { describe, expect, test } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { formatPair } from '../testing/history-text.ts';
import { type LeaderShape, TestLeader } from '../testing/test-leader.ts';

const OURS = { announces: Announcement.takesHandOver + Announcement.keepsLog };
const APACHE = { announces: 0 };
const OBSERVER: Partial<LearnerInfoPacket> = { type: PacketType.observerInfo };
const FIVE = { quorum: { voters: [1, 2, 3, 4, 5] } };

/** Server 3 leads epoch 2 of three servers; its followers have joined. */
function broadcasting(
  followers: readonly number[] = [1, 2],
  shape: Partial<LeaderShape> = {},
  info: Partial<LearnerInfoPacket> = {},
): TestLeader {
  return new TestLeader(shape).establish(followers, info);
}

/** What is said to one learner. */
function saidTo(test: TestLeader, learner: number): readonly string[] {
  return test.take().flatMap(({ to, text }) => (to === learner ? [text] : []));
}

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

  test('nobody hears of an epoch before it is durable here (ZOOKEEPER-335, 1291)', () => {
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

  test('observers and outsiders raise the epoch and are not counted (ZOOKEEPER-764)', () => {
    const test = new TestLeader();
    test.start();
    test.connect(7);
    test.info(7, 5, OBSERVER);
    test.connect(8);
    test.info(8, 9);
    // A voter that observes does not vote here, whatever the list says.
    test.connect(2);
    test.info(2, 3, OBSERVER);
    expect(test.said()).toEqual([]);
    test.connect(1);
    test.info(1, 1);
    expect(test.said()).toEqual(['writes acceptedEpoch 10']);
  });

  test('a voter that is gone again is not counted', () => {
    const test = new TestLeader(FIVE);
    test.start();
    test.connect(1);
    test.info(1);
    test.disconnect(1);
    test.connect(2);
    test.info(2);
    expect(test.said()).toEqual([]);
  });

  test('this server needs nobody else where it is a quorum by itself', () => {
    const test = new TestLeader({ serverId: 1, quorum: { voters: [1] } });
    test.start();
    test.disk();
    expect(test.said()).toEqual(['writes acceptedEpoch 2', 'writes currentEpoch 2', 'established epoch 2 with (1,5)']);
  });

  test.each([
    ['a newer configuration', { configVersion: makeZxid(0, 6) }, /configuration 6, which is newer than 5/],
    ['a protocol from before 3.4', { protocolVersion: 0xffff }, /older than release 3.4/],
    ['no id', { serverId: null }, /does not say which server it is/],
    ['the id of nobody, which owns sessions of this leader', { serverId: -2 }, /does not say which server it is/],
    ['the id of the leader', { serverId: 3 }, /says that it is server 3/],
  ])('a learner with %s is refused', (_what, info, reason) => {
    const test = new TestLeader({ configText: 'version=5' });
    test.start();
    test.connect(1);
    test.info(1, 1, info);
    expect(test.said()).toEqual([expect.stringMatching(reason)]);
    // And was not counted.
    expect(test.leader.epoch).toBe(-1);
  });

  test('a learner with an older configuration is welcome', () => {
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
    ['a packet that nobody knows', { type: null, typeNumber: 77 }],
  ] as const)('a learner that begins with %s is closed', (_what, packet) => {
    const test = new TestLeader();
    test.start();
    test.connect(1);
    test.packet(1, packet);
    expect(test.said()).toEqual([expect.stringMatching(/^closes 1: /)]);
  });

  test('a learner that says twice who it is is closed', () => {
    const test = broadcasting();
    test.info(1);
    expect(test.said()).toEqual(['closes 1: learner 1 says twice who it is']);
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

  test('a server whose data cannot be trusted is not counted, and is sent a snapshot', () => {
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

  test('outsiders and observers are not counted', () => {
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

  test('ACKEPOCH that nobody asked for ends the connection', () => {
    const test = broadcasting();
    test.ackEpoch(1, '(1,5)');
    expect(test.said()).toEqual(['closes 1: learner 1 sends ACKEPOCH, which nobody asked for']);
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

  test('without a quorum nothing that could be is said to be committed (ZOOKEEPER-790)', () => {
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

describe('catching up', () => {
  test('a restarted ensemble sends a newcomer everything, although nothing is proposed (ZOOKEEPER-1319)', () => {
    const test = broadcasting([1]);
    test.join(2, '(1,2)');
    expect(saidTo(test, 2)).toEqual([
      'LEADERINFO (2,0)',
      'DIFF (1,5)',
      ...['(1,3)', '(1,4)', '(1,5)'].flatMap((zxid) => [`PROPOSAL ${zxid}`, `COMMIT ${zxid}`]),
      'NEWLEADER (2,0)',
      'UPTODATE',
    ]);
  });

  test('an empty server whose leader has all there ever was is sent all of that', () => {
    const test = broadcasting([1]);
    test.join(2, '(0,0)');
    expect(saidTo(test, 2)[1]).toBe('DIFF (1,5)');
  });

  test('an empty server is sent a snapshot when the log begins later (ZOOKEEPER-4352)', () => {
    const test = broadcasting([1], { memory: 0, logFrom: '(1,2)' });
    test.propose(1);
    test.ack(1, '(2,1)');
    test.disk();
    test.take();
    test.join(2, '(0,0)');
    expect(saidTo(test, 2).slice(1, 3)).toEqual(['SNAP', 'NEWLEADER (2,0)']);
  });

  test('of two empty servers one follows the other', () => {
    const test = new TestLeader({ history: '', currentEpoch: 0, acceptedEpoch: 0 });
    test.start();
    test.connect(1);
    test.info(1, 0);
    test.disk();
    test.ackEpoch(1, '(0,0)', 0);
    test.disk();
    test.ack(1, '(1,0)');
    expect(saidTo(test, 1)).toEqual(['LEADERINFO (1,0)', 'DIFF (0,0)', 'NEWLEADER (1,0)', 'UPTODATE']);
  });

  test('TRUNC goes back within the epoch of the learner, to a txn that both have (ZOOKEEPER-1154)', () => {
    const shape = { history: '(1,1)..(1,5) (3,1)..(3,2)', currentEpoch: 3, acceptedEpoch: 3 };
    const start = (zxid: string): string | undefined => {
      const test = broadcasting([1], shape);
      test.join(2, zxid);
      return saidTo(test, 2)[1];
    };
    expect(start('(1,8)')).toBe('TRUNC (1,5)');
    expect(start('(3,4)')).toBe('TRUNC (3,2)');
    // Of epoch 2 the leader has nothing: to go back to (1,5) would leave what the learner had of epoch 1.
    expect(start('(2,3)')).toBe('SNAP');
    // It names the history that epoch 3 began with, and the leader has that.
    expect(start('(3,0)')).toBe('DIFF (3,2)');
  });

  test('TRUNC goes back to the end of the history, not to where the epoch began (ZOOKEEPER-1156)', () => {
    const test = broadcasting([1], { history: '(1,1)..(1,5)' });
    test.join(2, '(1,9)');
    expect(saidTo(test, 2).slice(1, 3)).toEqual(['TRUNC (1,5)', 'NEWLEADER (2,0)']);
  });

  test('TRUNC never names a zxid that is no txn, of which the log has no record', () => {
    const test = new TestLeader({ history: '(1,0)', memory: 0 }).establish([1], {}, '(1,0)');
    test.join(2, '(1,3)');
    expect(saidTo(test, 2)[1]).toBe('SNAP');
  });

  test('a server of Apache is sent a snapshot where TRUNC would do: what it cut might come back (ZOOKEEPER-1549)', () => {
    const test = broadcasting([1], { history: '(1,1)..(1,5)' });
    test.join(2, '(1,9)', APACHE);
    expect(saidTo(test, 2).slice(1, 3)).toEqual(['SNAP', 'NEWLEADER (2,0)']);
    // It replays what its log has behind a snapshot: this one is newer than (1,9), as Apache's leaders name theirs.
    expect(test.sentSnapshots).toEqual([makeZxid(2, 0)]);
  });

  test('a server of Apache is told to cut its log while no snapshot can be newer: the epoch is not established', () => {
    // Nothing was proposed in epoch 2.
    const test = new TestLeader({ history: '(1,1)..(1,5)', currentEpoch: 2, acceptedEpoch: 2 });
    test.start();
    test.connect(2);
    test.info(2, 2, APACHE);
    test.disk();
    test.ackEpoch(2, '(1,9)', 1);
    expect(saidTo(test, 2)).toContain('TRUNC (1,5)');
  });

  test('a server of Apache is never told to cut behind a placeholder: it would keep the txn behind that (row 41a)', () => {
    const shape = { history: '(1,1)..(1,5) (1,6)*', currentEpoch: 2, acceptedEpoch: 2 };
    const start = (announces: number): readonly string[] => {
      const test = new TestLeader(shape);
      test.start();
      test.connect(2);
      test.info(2, 2, { announces });
      test.disk();
      test.ackEpoch(2, '(1,9)', 1);
      return saidTo(test, 2);
    };
    expect(start(APACHE.announces).slice(1, 4)).toEqual(['TRUNC (1,5)', 'PROPOSAL (1,6)', 'COMMIT (1,6)']);
    expect(start(OURS.announces).slice(1, 3)).toEqual(['TRUNC (1,6)', 'NEWLEADER (3,0)']);
  });

  test('a gap in the log means a snapshot (ZOOKEEPER-2846)', () => {
    const test = broadcasting([1], { memory: 1 });
    test.punch('(1,3)');
    test.join(2, '(1,1)');
    expect(saidTo(test, 2).slice(1, 3)).toEqual(['SNAP', 'NEWLEADER (2,0)']);
  });

  test('a gap that shows on the way ends the connection, and the next one begins with a snapshot', () => {
    const test = broadcasting([1], { history: '(1,1)..(1,9)', memory: 1 });
    test.punch('(1,5)');
    test.connect(2);
    test.info(2);
    test.ackEpoch(2, '(1,1)');
    test.disk();
    expect(test.said().at(-1)).toMatch(/^closes 2: the log has a gap behind 100000003.* learner 2 needs a snapshot$/);
    test.join(2, '(1,1)');
    expect(saidTo(test, 2).slice(1, 3)).toEqual(['SNAP', 'NEWLEADER (2,0)']);
  });

  test('a learner is sent behind a snapshot what was committed and not applied when that began', () => {
    const test = broadcasting([1, 2, 4], { quorum: { voters: [1, 2, 3, 4, 5] } });
    // The leader's own disk has none of it yet.
    test.propose(2);
    for (const id of [1, 2, 4]) test.ack(id, '(2,2)');
    test.connect(5);
    test.info(5, 1, OURS);
    test.take();
    test.ackEpoch(5, '−1');
    const txns = ['PROPOSAL (2,1)', 'COMMIT (2,1)', 'PROPOSAL (2,2)', 'COMMIT (2,2)'];
    expect(saidTo(test, 5)).toEqual(['SNAP', ...txns, 'NEWLEADER (2,0)']);
  });

  describe('upon a txn that is longer than learners take', () => {
    // The payloads of this history are its zxids as texts: from (1,10) on they are longer than five bytes.
    const history = { history: '(1,1)..(1,12)', options: { txnBytesMax: 5 } };

    test.each([1, 100])('sends a snapshot when it is known from the beginning (%i txns in memory)', (memory) => {
      const test = new TestLeader({ ...history, memory }).establish([1], {}, '(1,12)');
      test.join(2, '(1,8)');
      expect(saidTo(test, 2)).toEqual(['LEADERINFO (2,0)', 'SNAP', 'NEWLEADER (2,0)', 'UPTODATE']);
      // Whoever has them already is sent what follows.
      test.join(8, '(1,12)', OBSERVER);
      expect(saidTo(test, 8)[1]).toBe('DIFF (1,12)');
    });

    test('that shows on the way ends the connection, and also the next leader begins with a snapshot', () => {
      const needSnapshot = new Set<number>();
      const first = new TestLeader({ ...history, memory: 1, needSnapshot });
      first.readBatch = 2;
      first.start();
      first.connect(2);
      first.info(2);
      first.disk();
      first.ackEpoch(2, '(1,5)');
      first.disk();
      expect(first.said().at(-1)).toMatch(/^closes 2: .* a txn too long to be sent: learner 2 needs a snapshot$/);
      expect(first.sentPayloads.map((payload) => new TextDecoder().decode(payload))).not.toContain('(1,10)');

      const second = new TestLeader({ ...history, memory: 1, acceptedEpoch: 2, needSnapshot });
      second.start();
      second.connect(2);
      second.info(2, 2);
      second.disk();
      second.ackEpoch(2, '(1,5)');
      expect(saidTo(second, 2)).toEqual(['LEADERINFO (3,0)', 'SNAP', 'NEWLEADER (3,0)']);
    });
  });

  test('history is sent as the link has room, and memory that is dropped meanwhile is read from the disk', () => {
    const test = broadcasting([1], { memory: 2, options: { commitLogCount: 2 } });
    test.readBatch = 100;
    test.connect(2);
    test.info(2);
    test.narrow.add(2);
    test.ackEpoch(2, '(1,5)');
    // A learner with nothing to catch up waits for nothing.
    expect(saidTo(test, 2).at(-1)).toBe('NEWLEADER (2,0)');

    test.connect(8);
    test.info(8);
    test.narrow.add(8);
    test.ackEpoch(8, '−1');
    test.propose(5);
    test.ack(1, '(2,5)');
    test.disk();
    expect(saidTo(test, 8)).toEqual(['LEADERINFO (2,0)', 'SNAP']);
    test.room(8);
    expect(test.said()).toEqual(['reads its log from (1,5) to (2,5)']);
    test.disk();
    expect(saidTo(test, 8).slice(-3)).toEqual(['PROPOSAL (2,5)', 'COMMIT (2,5)', 'NEWLEADER (2,0)']);
  });

  test('a batch of history is bounded', () => {
    const test = new TestLeader({ history: '(1,1)..(1,400)', memory: 400 }).establish([1]);
    test.connect(2);
    test.info(2);
    test.narrow.add(2);
    test.ackEpoch(2, '(1,1)');
    expect(saidTo(test, 2).filter((text) => text.startsWith('PROPOSAL'))).toHaveLength(256);
    test.room(2);
    expect(saidTo(test, 2).at(-1)).toBe('NEWLEADER (2,0)');
  });

  test('what a server of Apache has of this epoch counts once it acknowledges it anew, behind a snapshot (4646)', () => {
    const test = broadcasting([1, 2], FIVE);
    test.propose(1);
    test.disk();
    test.ack(1, '(2,1)');
    test.disconnect(2);
    test.take();
    test.connect(2);
    test.info(2, 2, APACHE);
    test.ackEpoch(2, '(2,1)', -1);
    expect(test.said()).toEqual(['→ 2 LEADERINFO (2,0)', '→ 2 SNAP', '→ 2 PROPOSAL (2,1)', '→ 2 NEWLEADER (2,0)']);
    test.ack(2, '(2,0)');
    test.ack(2, '(2,1)');
    expect(test.said()).toContain('committed (2,1)');
  });

  test('a txn of this epoch that is not committed yet is not truncated: it counts, and the learner waits for it', () => {
    const test = broadcasting([1, 2], FIVE);
    test.propose(2);
    test.disk();
    test.ack(1, '(2,2)');
    test.disconnect(2);
    test.take();
    test.connect(2);
    test.info(2, 2);
    test.ackEpoch(2, '(2,1)', -1);
    expect(test.said()).toEqual([
      '→ 2 LEADERINFO (2,0)',
      '→ 1 COMMIT (2,1)',
      '→ 2 DIFF (2,1)',
      '→ 2 PROPOSAL (2,2)',
      '→ 2 NEWLEADER (2,0)',
      'committed (2,1)',
    ]);

    test.disconnect(1);
    test.connect(4);
    test.info(4, 2);
    test.ackEpoch(4, '(2,2)', -1);
    expect(test.said()).toEqual(['→ 4 LEADERINFO (2,0)']);
    test.ack(2, '(2,0)');
    test.ack(2, '(2,2)');
    expect(test.said()).toEqual([
      '→ 2 UPTODATE',
      '→ 2 COMMIT (2,2)',
      '→ 4 DIFF (2,2)',
      '→ 4 NEWLEADER (2,0)',
      'committed (2,2)',
    ]);
  });

  test('a txn of this epoch that was never proposed ends the connection', () => {
    const test = broadcasting();
    test.join(8, '(1,5)');
    test.connect(9);
    test.info(9);
    test.take();
    test.ackEpoch(9, '(2,1)', -1);
    expect(test.said()).toEqual(['closes 9: learner 9 has 200000001, which this leader has not proposed']);
  });

  test('a learner that goes while the disk reads for it is forgotten', () => {
    const test = broadcasting([1], { memory: 1 });
    test.connect(2);
    test.info(2);
    test.ackEpoch(2, '(1,1)');
    test.disconnect(2);
    test.take();
    test.disk();
    expect(test.said()).toEqual([]);
  });
});

describe('broadcast', () => {
  test('the same bytes go to the log, to followers and to observers', () => {
    const test = broadcasting([1]);
    test.join(7, '(1,5)', OBSERVER);
    test.sentPayloads.length = 0;
    test.propose(1);
    test.ack(1, '(2,1)');
    test.disk();
    const [entry] = test.appended;
    const expected = bytesOf((list) => list.long(7).int(1).long(0x200000001).long(1).int(-1).int(-101));
    expect(entry?.payload).toEqual(expected);
    expect(test.sentPayloads).toHaveLength(2);
    for (const payload of test.sentPayloads) expect(payload).toBe(entry?.payload);
  });

  test('the host hears of what each server has on its disk, once', () => {
    const test = broadcasting([1, 2]);
    test.acknowledged.length = 0;
    test.propose(2);
    test.ack(1, '(2,2)');
    test.ack(1, '(2,1)');
    test.disk();
    test.ack(2, '(2,1)');
    expect(test.acknowledged).toEqual(['1 (2,2)', 'itself (2,2)', '2 (2,1)']);
  });

  test('the first txn of an epoch is (epoch, 1)', () => {
    const test = broadcasting();
    expect(formatPair(test.leader.lastProposed)).toBe('(2,0)');
    expect(formatPair(test.leader.nextZxid())).toBe('(2,1)');
  });

  test('txns are committed in their order, whatever the order of their ACKs', () => {
    const test = broadcasting([1, 2], FIVE);
    test.propose(3);
    test.disk();
    test.take();
    test.ack(1, '(2,3)');
    test.ack(2, '(2,1)');
    expect(test.said()).toEqual(['→ 1 COMMIT (2,1)', '→ 2 COMMIT (2,1)', 'committed (2,1)']);
    test.ack(2, '(2,3)');
    expect(test.said().filter((text) => text.startsWith('→ 1') || text.startsWith('committed'))).toEqual([
      '→ 1 COMMIT (2,2)',
      '→ 1 COMMIT (2,3)',
      'committed (2,3)',
    ]);
  });

  test('ACKs of other epochs, of what was not proposed, and old ones count for nothing (CCF 5674)', () => {
    const test = broadcasting([1]);
    test.propose(2);
    test.disk();
    test.take();
    for (const zxid of ['(1,5)', '(1,9)', '(2,3)', '(3,1)', '(9,9)']) test.ack(1, zxid);
    expect(test.said()).toEqual([]);
    test.ack(1, '(2,2)');
    test.ack(1, '(2,1)');
    test.ack(1, '(2,2)');
    expect(test.said()).toEqual(['→ 1 COMMIT (2,1)', '→ 1 COMMIT (2,2)', 'committed (2,2)']);
  });

  test('ACKs of outsiders and observers count for nothing', () => {
    const test = broadcasting([1, 2], FIVE);
    for (const [id, info] of [
      [8, {}],
      [7, OBSERVER],
    ] as const) {
      test.join(id, '(1,5)', info);
    }
    test.propose(1);
    test.disk();
    test.take();
    test.ack(8, '(2,1)');
    test.ack(7, '(2,1)');
    test.ack(1, '(2,1)');
    expect(test.said()).toEqual([]);
    test.ack(2, '(2,1)');
    expect(test.said()).toContain('committed (2,1)');
  });

  test('what followers hold is committed, but applied here only once it is durable here (ZOOKEEPER-4882)', () => {
    const test = broadcasting([1, 2]);
    test.propose(1);
    test.take();
    test.ack(1, '(2,1)');
    test.ack(2, '(2,1)');
    expect(test.said()).toEqual(['→ 1 COMMIT (2,1)', '→ 2 COMMIT (2,1)']);
    test.disk();
    expect(test.said()).toEqual(['committed (2,1)']);
  });

  test('an observer is told what is committed, and nothing else', () => {
    const test = broadcasting([1]);
    test.join(7, '(1,5)', OBSERVER);
    test.propose(1);
    test.disk();
    test.take();
    test.ack(1, '(2,1)');
    expect(saidTo(test, 7)).toEqual(['INFORM (2,1)']);
  });

  test('a host may propose while it is told something', () => {
    const test = new TestLeader();
    let left = 5;
    test.onServing = () => {
      if (left-- > 0) test.proposeNow();
    };
    test.establish([1]);
    for (let n = 1; n <= 5; n++) {
      test.disk();
      test.ack(1, `(2,${n})`);
    }
    expect(
      test
        .said()
        .filter((text) => text.startsWith('committed'))
        .at(-1),
    ).toBe('committed (2,5)');
  });

  test('requests are passed on once their learner serves', () => {
    const test = broadcasting([1]);
    const request = { sessionId: 5n, cxid: 1, op: OpCode.create, body: new Uint8Array(0), authInfo: [] };
    test.packet(1, { type: PacketType.request, ...request });
    test.packet(1, { type: PacketType.revalidate, sessionId: 6n, timeoutMs: 1000 });
    test.packet(1, { type: PacketType.ping, zxid: makeZxid(2, 0), sessions: [{ sessionId: 8n, timeoutMs: 1 }] });
    test.packet(1, { type: null, typeNumber: 77 });
    expect(test.said()).toEqual([
      'is asked by 1: session 5 cxid 1',
      'is asked by 1 about session 6',
      'hears of sessions 8',
    ]);
    test.connect(2);
    test.info(2);
    test.ackEpoch(2, '(1,5)');
    test.take();
    test.packet(2, { type: PacketType.request, ...request });
    expect(test.said()).toEqual(['closes 2: learner 2 sends REQUEST before it may serve']);
  });
});

describe('sync', () => {
  test('is answered when a quorum has answered a ping that was sent after it (ZOOKEEPER-1675)', () => {
    const test = broadcasting([1, 2], FIVE);
    test.advance(500);
    test.take();
    expect(test.sync()).toBe(1);
    expect(test.said()).toEqual(['→ 1 PING (2,0)', '→ 2 PING (2,0)']);
    // Both answer the ping that was sent before.
    test.pong(1);
    test.pong(2);
    expect(test.said()).toEqual([]);
    test.pong(1);
    expect(test.said()).toEqual([]);
    test.pong(2);
    expect(test.said()).toEqual(['answers sync 1']);
    expect(test.leader.lastSynced).toBe(1);
  });

  test('one ping serves all syncs of a turn', () => {
    const test = broadcasting([1]);
    for (let i = 0; i < 3; i++) test.leader.sync();
    test.sync();
    expect(test.said()).toEqual(['→ 1 PING (2,0)']);
    test.pong(1);
    expect(test.said()).toEqual(['answers sync 4']);
  });

  test('is not confirmed by a ping that was sent for an earlier one', () => {
    const test = broadcasting([1, 2], FIVE);
    test.sync();
    test.pong(1);
    test.sync();
    test.take();
    test.pong(2);
    expect(test.said()).toEqual(['answers sync 1']);
    test.pong(1);
    test.pong(2);
    expect(test.said()).toEqual(['answers sync 2']);
  });

  test('is answered after everything that was proposed before it', () => {
    const test = broadcasting([1]);
    test.propose(1);
    test.sync();
    test.propose(1);
    test.take();
    test.pong(1);
    test.ack(1, '(2,1)');
    expect(test.said()).toEqual([]);
    test.disk();
    expect(test.said()).toEqual(['→ 1 COMMIT (2,1)', 'committed (2,1)', 'answers sync 1']);
  });

  test('answers to pings that were never sent do not help', () => {
    const test = broadcasting([1]);
    for (let i = 0; i < 5; i++) test.pong(1);
    test.sync();
    expect(test.said()).toEqual(['→ 1 PING (2,0)']);
    test.pong(1);
    expect(test.said()).toEqual(['answers sync 1']);
  });

  test('the answer of a connection that is gone does not help', () => {
    const test = broadcasting([1, 2], FIVE);
    test.sync();
    test.pong(1);
    test.disconnect(1);
    test.take();
    test.pong(2);
    expect(test.said()).toEqual([]);
    test.join(1);
    test.advance(500);
    test.take();
    test.pong(1);
    expect(test.said()).toEqual(['answers sync 1']);
  });

  test('observers and outsiders confirm nothing', () => {
    const test = broadcasting([1]);
    test.join(7, '(1,5)', OBSERVER);
    test.join(8);
    test.sync();
    test.take();
    test.pong(8);
    test.pong(7);
    expect(test.said()).toEqual([]);
  });

  test('where this server is a quorum by itself the answer is there at once', () => {
    const test = new TestLeader({ serverId: 1, quorum: { voters: [1] } });
    test.start();
    test.disk();
    test.take();
    expect(test.sync()).toBe(0);
    expect(test.leader.lastSynced).toBe(0);
    test.propose(1);
    expect(test.sync()).toBe(1);
    expect(test.sync()).toBe(2);
    expect(test.leader.lastSynced).toBe(0);
    test.disk();
    expect(test.said()).toEqual(['appends (2,1)', 'committed (2,1)', 'answers sync 2']);
  });
});

describe('sync of a learner', () => {
  test('is answered by SYNC behind the commits of all that was proposed before it', () => {
    const test = broadcasting([1, 2], {}, OURS);
    test.propose(1);
    test.syncOf(1);
    test.take();
    test.pong(2);
    test.ack(1, '(2,1)');
    test.ack(2, '(2,1)');
    expect(test.said()).toEqual(['→ 1 COMMIT (2,1)', '→ 2 COMMIT (2,1)']);
    test.disk();
    expect(test.said()).toEqual(['committed (2,1)', 'answers sync 1', '→ 1 SYNC']);
  });

  test('holds back the commits of later txns from a follower of Apache until SYNC has been sent', () => {
    const test = broadcasting([1, 2], {}, APACHE);
    test.propose(1);
    test.syncOf(1);
    test.propose(2);
    test.take();
    // The followers are a quorum, and go on: the answer to the sync waits for the disk of the leader.
    test.ack(1, '(2,3)');
    test.ack(2, '(2,3)');
    expect(test.said()).toEqual(['→ 1 COMMIT (2,1)', '→ 2 COMMIT (2,1)', '→ 2 COMMIT (2,2)', '→ 2 COMMIT (2,3)']);
    test.propose(1);
    expect(test.said()).toEqual(['appends (2,4)', '→ 1 PROPOSAL (2,4)', '→ 2 PROPOSAL (2,4)']);
    test.pong(2);
    expect(test.said()).toEqual([]);
    test.disk();
    expect(test.said()).toEqual([
      'committed (2,3)',
      'answers sync 1',
      '→ 1 SYNC',
      '→ 1 COMMIT (2,2)',
      '→ 1 COMMIT (2,3)',
    ]);
    test.ack(1, '(2,4)');
    test.ack(2, '(2,4)');
    expect(test.said()).toEqual(['→ 1 COMMIT (2,4)', '→ 2 COMMIT (2,4)', 'committed (2,4)']);
  });

  test('holds them back between two syncs of one follower of Apache', () => {
    const test = broadcasting([1, 2], {}, APACHE);
    test.syncOf(1);
    test.propose(1);
    test.syncOf(1);
    test.propose(1);
    test.syncOf(1);
    test.disk();
    test.ack(2, '(2,2)');
    test.take();
    for (let n = 0; n < 3; n++) test.pong(2);
    expect(saidTo(test, 1)).toEqual(['SYNC', 'COMMIT (2,1)', 'SYNC', 'COMMIT (2,2)', 'SYNC']);
  });

  test('holds back INFORM from an observer of Apache, and nothing from one of ours', () => {
    const test = broadcasting([1]);
    test.join(7, '(1,5)', { ...OBSERVER, ...APACHE });
    test.join(8, '(1,5)', { ...OBSERVER, ...OURS });
    test.syncOf(7);
    test.syncOf(8);
    test.propose(1);
    test.disk();
    test.take();
    test.ack(1, '(2,1)');
    expect(test.said()).toEqual(['→ 1 COMMIT (2,1)', '→ 8 INFORM (2,1)', 'committed (2,1)']);
    test.pong(1);
    expect(test.said()).toEqual(['answers sync 1', '→ 7 SYNC', '→ 7 INFORM (2,1)']);
    test.pong(1);
    expect(test.said()).toEqual(['answers sync 2', '→ 8 SYNC']);
    expect(test.sentPayloads.at(-1)).toEqual(test.appended.at(-1)?.payload);
  });

  test('keeps what a learner of Apache waits for although the memory for others has dropped it', () => {
    const test = broadcasting([1], { options: { commitLogCount: 1 } });
    test.join(7, '(1,5)', { ...OBSERVER, ...APACHE });
    test.syncOf(7);
    test.propose(5);
    test.disk();
    test.ack(1, '(2,5)');
    test.take();
    test.pong(1);
    expect(saidTo(test, 7)).toEqual(['SYNC', ...[1, 2, 3, 4, 5].map((n) => `INFORM (2,${n})`)]);
  });

  test('says whether a learner has been told of a txn', () => {
    const test = broadcasting([1]);
    test.join(7, '(1,5)', { ...OBSERVER, ...APACHE });
    const link = [...test.leader.learners].find(({ serverId }) => serverId === 7)!.link;
    expect(test.leader.hasTold(link, test.leader.lastTxn)).toBe(true);
    test.syncOf(7);
    test.propose(1);
    expect(test.leader.hasTold(link, makeZxid(2, 1))).toBe(false);
    test.disk();
    test.ack(1, '(2,1)');
    expect(test.leader.hasTold(link, makeZxid(2, 1))).toBe(false);
    test.pong(1);
    expect(test.leader.hasTold(link, makeZxid(2, 1))).toBe(true);
  });

  test('of a connection that is gone is answered to nobody, not to the next one of that server either', () => {
    const test = broadcasting([1, 2], {}, APACHE);
    test.propose(1);
    test.syncOf(1);
    test.propose(1);
    test.ack(2, '(2,2)');
    test.disconnect(1);
    test.join(1, '(1,5)', APACHE);
    test.take();
    test.pong(2);
    test.propose(1);
    test.disk();
    test.ack(2, '(2,3)');
    const said = saidTo(test, 1);
    expect(said).not.toContain('SYNC');
    expect(said).toContain('COMMIT (2,3)');
  });

  test('that waits holds nothing up when the leader steps down', () => {
    const test = broadcasting([1], {}, APACHE);
    test.syncOf(1);
    test.propose(1);
    test.take();
    test.handOver();
    test.ack(1, '(2,1)');
    test.advance(1000, [1]);
    expect(test.said().at(-1)).toMatch(/^steps down/);
  });

  test('where this server is a quorum by itself is answered at once', () => {
    const test = new TestLeader({ serverId: 1, quorum: { voters: [1] } });
    test.start();
    test.disk();
    test.join(7, '(1,5)', { ...OBSERVER, ...APACHE });
    test.take();
    test.syncOf(7);
    expect(test.said()).toEqual(['→ 7 SYNC']);
    test.propose(1);
    test.disk();
    expect(saidTo(test, 7)).toEqual(['INFORM (2,1)']);
  });

  test('a learner of Apache that more waits for than memory is good for is closed', () => {
    const test = broadcasting([1]);
    test.join(7, '(1,5)', { ...OBSERVER, ...APACHE });
    test.syncOf(7);
    // Nobody answers a ping.
    for (let n = 0; n < 200; n++) {
      test.proposeNow(new Uint8Array(400_000));
      test.disk();
      test.ack(1, `(2,${n + 1})`);
    }
    test.take();
    test.advance(500);
    expect(test.said()).toContainEqual(expect.stringMatching(/^closes 7: \d+ bytes of commits wait for the answer/));
  });
});

describe('liveness', () => {
  test.each([
    ['discovery', (): void => {}],
    [
      'epoch',
      (test: TestLeader): void => {
        test.connect(1);
        test.info(1);
        test.disk();
      },
    ],
    [
      'synchronization',
      (test: TestLeader): void => {
        test.connect(1);
        test.info(1);
        test.disk();
        test.ackEpoch(1, '(1,5)');
        test.disk();
      },
    ],
  ])('%s is over after initLimit ticks, in one way or the other', (phase, prepare) => {
    const test = new TestLeader();
    test.start();
    test.advance(3000);
    prepare(test);
    expect(test.leader.phase).toBe(phase);
    test.take();
    test.advance(phase === 'discovery' ? 6999 : 9999);
    expect(test.said()).toEqual([]);
    test.advance(1);
    expect(test.said().at(-1)).toMatch(/^steps down: no quorum/);
    expect(test.leader.nextDeadlineMs).toBe(Number.POSITIVE_INFINITY);
  });

  test('a learner that says nothing for syncLimit ticks is closed', () => {
    const test = broadcasting([1, 2], FIVE);
    test.join(4);
    test.advance(5000, [1, 2]);
    expect(test.said().filter((text) => text.startsWith('closes'))).toEqual([]);
    test.advance(500, [1, 2]);
    expect(test.said()).toContain('closes 4: learner 4 is silent');
  });

  test('a learner that catches up may be silent for initLimit ticks', () => {
    const test = broadcasting([1]);
    test.connect(2);
    test.info(2);
    test.ackEpoch(2, '(1,3)');
    test.advance(10_000, [1]);
    expect(test.said().filter((text) => text.startsWith('closes'))).toEqual([]);
    test.advance(500, [1]);
    expect(test.said()).toContain('closes 2: learner 2 is silent');
  });

  test('a connection that nobody says anything over is closed too', () => {
    const test = broadcasting([1]);
    test.connect(2);
    test.advance(10_500, [1]);
    expect(test.said()).toContain('closes 2: a learner is silent');
  });

  test('a learner that takes a large snapshot is not silent (ZOOKEEPER-1697)', () => {
    const test = broadcasting([1]);
    test.connect(2);
    test.info(2);
    test.narrow.add(2);
    test.ackEpoch(2, '−1');
    for (let i = 0; i < 5; i++) {
      test.advance(9000, [1]);
      test.progress(2);
    }
    test.room(2);
    test.ack(2, '(2,0)');
    expect(saidTo(test, 2).at(-1)).toBe('UPTODATE');
  });

  test('a learner that serves and takes what it is sent, but says nothing, is closed after syncLimit ticks', () => {
    const test = broadcasting([1, 2]);
    for (let i = 0; i < 11; i++) {
      test.advance(500, [1]);
      test.progress(2);
    }
    expect(test.said()).toContain('closes 2: learner 2 is silent');
  });

  test('a follower that answers pings but acknowledges nothing is closed after syncLimit ticks', () => {
    const test = broadcasting([1, 2]);
    test.propose(1);
    test.disk();
    test.ack(1, '(2,1)');
    test.advance(5500, [1, 2]);
    expect(test.said().filter((text) => text.startsWith('closes'))).toEqual([]);
    test.advance(500, [1, 2]);
    expect(test.said()).toContain('closes 2: learner 2 has not acknowledged 200000001 within syncLimit');
  });

  test('an idle ensemble closes nobody', () => {
    const test = broadcasting([1, 2]);
    test.advance(60_000, [1, 2]);
    expect(test.said().filter((text) => !text.includes('PING'))).toEqual([]);
  });

  test('a leader does not count a learner that waits for it and has said nothing for initLimit ticks', () => {
    const test = broadcasting([1, 2]);
    test.propose(2);
    test.disconnect(1);
    test.connect(1);
    test.info(1, 2, OURS);
    test.ackEpoch(1, '(2,1)', 2);
    test.disconnect(2);
    // Its own disk does not work: nothing is committed, and learner 1 is not sent anything.
    test.advance(10_000);
    expect(test.said().filter((text) => /^(closes|steps)/.test(text))).toEqual([]);
    test.advance(1500);
    expect(test.said().at(-1)).toMatch(/^steps down: fewer than a quorum/);
  });

  test('a leader does not take what its own disk has read for a learner as a sign that the learner is there', () => {
    const test = broadcasting([1], { memory: 1 });
    test.connect(2);
    test.info(2);
    test.ackEpoch(2, '(1,1)');
    test.advance(9000, [1]);
    test.disk();
    expect(saidTo(test, 2).at(-1)).toBe('NEWLEADER (2,0)');
    test.disconnect(1);
    test.advance(1000);
    expect(test.said().some((text) => text.startsWith('steps'))).toBe(false);
    test.advance(1500);
    expect(test.said().at(-1)).toMatch(/^steps down: fewer than a quorum/);
  });

  test('a leader without a quorum steps down within a tick', () => {
    const test = broadcasting([1, 2]);
    test.disconnect(1);
    test.advance(2000, [2]);
    expect(test.said().some((text) => text.startsWith('steps'))).toBe(false);
    test.disconnect(2);
    test.advance(1000);
    expect(test.said().at(-1)).toMatch(/^steps down: fewer than a quorum/);
  });

  test('observers and outsiders are no quorum', () => {
    const test = broadcasting([1]);
    test.join(7, '(1,5)', OBSERVER);
    test.join(8);
    test.disconnect(1);
    test.advance(1000, [7, 8]);
    expect(test.said().at(-1)).toMatch(/^steps down/);
  });

  test('after the end nothing is asked for any more', () => {
    const test = broadcasting([1]);
    test.propose(1);
    test.disconnect(1);
    test.advance(1000);
    test.take();
    test.connect(1);
    test.info(1);
    test.disk();
    test.advance(60_000);
    test.handOver();
    expect(test.said()).toEqual([]);
  });
});

describe('handing over', () => {
  test('goes to the highest id among those that have everything', () => {
    const test = new TestLeader(FIVE).establish([1, 2, 4], OURS);
    test.propose(1);
    for (const id of [1, 2]) test.ack(id, '(2,1)');
    test.handOver();
    test.take();
    test.disk();
    expect(test.said().slice(-2)).toEqual(['→ 2 HANDOVER (2,1)', 'steps down: asked to: learner 2 takes the place']);
  });

  test('is done at once when nothing is outstanding', () => {
    const test = new TestLeader().establish([1, 2], OURS);
    test.handOver();
    expect(test.said()).toEqual(['→ 2 HANDOVER (2,0)', 'steps down: asked to: learner 2 takes the place']);
  });

  test('waits for a learner that can take the place, a tick at most', () => {
    const test = broadcasting([1]);
    test.join(2, '(1,5)', OURS);
    test.propose(1);
    test.ack(1, '(2,1)');
    test.disk();
    test.take();
    test.handOver();
    expect(test.leader.isHandingOver).toBe(true);
    expect(test.said()).toEqual([]);
    test.advance(1000, [1, 2]);
    expect(test.said().at(-1)).toBe('steps down: asked to: no learner can take the place');
  });

  test('Apache’s servers, observers and servers without a vote or a weight are told nothing', () => {
    const quorum = {
      voters: [1, 2, 3],
      groups: [[1, 2, 3]],
      weights: new Map([[2, 0]]),
    };
    const test = new TestLeader({ quorum }).establish([1]);
    test.join(2, '(1,5)', OURS);
    test.join(7, '(1,5)', { ...OBSERVER, ...OURS });
    test.join(8, '(1,5)', OURS);
    test.take();
    test.handOver();
    expect(test.said()).toEqual(['steps down: asked to: no learner can take the place']);
  });

  test('begins by itself before the counter of the epoch ends (ZOOKEEPER-1277)', () => {
    const test = new TestLeader({ options: { epochTxnsMax: 2 } }).establish([1], OURS);
    test.propose(1);
    expect(test.leader.isHandingOver).toBe(false);
    test.propose(1);
    expect(test.leader.isHandingOver).toBe(true);
    test.ack(1, '(2,2)');
    test.disk();
    expect(test.said().slice(-2)).toEqual([
      '→ 1 HANDOVER (2,2)',
      'steps down: epoch 2 has had its 2 txns: learner 1 takes the place',
    ]);
    expect(MAX_COUNTER).toBe(0xffffffff);
  });

  test('before the epoch is established is just the end', () => {
    const test = new TestLeader();
    test.start();
    test.handOver();
    expect(test.said()).toEqual(['steps down: asked to']);
  });
});

describe('a leader that gives leases', () => {
  const LEASE_MS = 2000;
  const leased = (followers: readonly number[], voters = [1, 2, 3]): TestLeader =>
    new TestLeader({ quorum: { voters }, options: { leaseMs: LEASE_MS } }).establish(followers, {
      announces: Announcement.keepsLog + announcedLease(LEASE_MS),
    });

  test('sends a ping behind UPTODATE, one more when that is answered, and then only as its heart beats', () => {
    const test = new TestLeader({ options: { leaseMs: LEASE_MS } });
    test.establish([], {});
    test.connect(1);
    test.info(1, 1, { announces: Announcement.keepsLog + announcedLease(LEASE_MS) });
    test.disk();
    test.ackEpoch(1, '(1,5)');
    test.disk();
    test.take();
    test.ack(1, '(2,0)');
    expect(test.said().slice(-2)).toEqual(['→ 1 UPTODATE', '→ 1 PING (2,0)']);
    test.pong(1);
    expect(test.said()).toEqual(['→ 1 PING (2,0)']);
    test.pong(1);
    expect(test.said()).toEqual([]);
    test.advance(500);
    expect(test.said()).toEqual(['→ 1 PING (2,0)']);
  });

  test('sends no ping before the last one is answered, and then one for all syncs since', () => {
    const test = leased([1]);
    for (let i = 0; i < 2; i++) test.pong(1);
    test.take();
    test.sync();
    expect(test.said()).toEqual(['→ 1 PING (2,0)']);
    test.sync();
    test.sync();
    test.advance(1500);
    expect(test.said()).toEqual([]);
    test.pong(1);
    expect(test.said()).toEqual(['answers sync 1', '→ 1 PING (2,0)']);
    test.pong(1);
    expect(test.said()).toEqual(['answers sync 3']);
  });

  test('may answer its clients for a lease from the pings on that a quorum has answered', () => {
    const test = leased([1]);
    for (let i = 0; i < 2; i++) test.pong(1);
    const sinceMs = test.clock.nowMs;
    test.advance(500);
    expect(test.leader.lease.untilMs).toBe(sinceMs + LEASE_MS);
    test.clock.nowMs += 300;
    test.pong(1);
    expect(test.leader.lease.untilMs).toBe(sinceMs + 500 + LEASE_MS);
  });

  test('confirms nothing by its pings once its own lease is over', () => {
    const test = leased([1, 2], FIVE.quorum.voters);
    for (let i = 0; i < 2; i++) for (const learner of [1, 2]) test.pong(learner);
    test.advance(500);
    test.take();
    // Learner 2 is silent: with learner 1 alone there is no quorum.
    test.pong(1);
    test.advance(LEASE_MS);
    test.take();
    test.pong(1);
    test.advance(500);
    expect(test.said()).toEqual(['→ 1 PING (0,0)']);
    // What learner 2 answers is an old ping; the next one shows that it follows still.
    for (const learner of [1, 2]) test.pong(learner);
    test.advance(500);
    test.take();
    test.pong(1);
    test.pong(2);
    expect(test.said().at(-1)).toBe('→ 2 PING (2,0)');
  });
});

describe('a change of the membership', () => {
  test('lets nobody confirm that this leader leads who has answered no ping', () => {
    const test = broadcasting([1, 2, 4]);
    test.sync();
    test.disconnect(4);
    test.join(4);
    test.proposeChange({ voters: [3, 4] });
    test.disk();
    test.take();
    test.ack(1, '(2,1)');
    test.ack(4, '(2,1)');
    expect(test.said()).toContain('committed (2,1)');
    expect(test.leader.lastSynced).toBe(0);
    test.advance(1000, [4]);
    expect(test.said()).toContain('answers sync 1');
  });

  test('counts what a new voter holds that waits to catch up', () => {
    const test = broadcasting([2, 4], { quorum: { voters: [2, 3] } }, OURS);
    test.propose();
    test.disk();
    test.disconnect(4);
    test.connect(4);
    test.info(4, 2, OURS);
    test.ackEpoch(4, '(2,1)', 2);
    test.proposeChange({ voters: [3, 4] });
    test.disk();
    test.take();
    test.ack(2, '(2,2)');
    expect(test.said()).toContain('committed (2,1)');
  });

  test('is in force for a learner whose log ends with it, and which waited for its commit', () => {
    const test = broadcasting([1, 2, 4], {}, OURS);
    test.proposeChange({ voters: [1, 2, 3, 4] });
    test.disk();
    test.disconnect(4);
    test.connect(4);
    test.info(4, 2, OURS);
    test.ackEpoch(4, '(2,1)', 2);
    for (const id of [1, 2]) test.ack(id, '(2,1)');
    expect(test.namedMemberships.at(-1)).toBe('version=200000001');
  });
});
