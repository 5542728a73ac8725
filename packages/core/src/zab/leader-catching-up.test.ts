import { counterOf, JuteReader, makeZxid, readTxnEntry } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { APACHE, broadcasting, FIVE, OBSERVER, OURS, saidTo } from '../testing/broadcasting-leader.ts';
import { TestLeader } from '../testing/test-leader.ts';

describe('catching up', () => {
  test('a restarted ensemble sends a new server everything, even if nothing is proposed (ZOOKEEPER-1319)', () => {
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

  test('an empty server whose leader has the complete log is sent all of it', () => {
    const test = broadcasting([1]);
    test.join(2, '(0,0)');
    expect(saidTo(test, 2)[1]).toBe('DIFF (1,5)');
  });

  test('a server that has missed hundreds of applied txns is sent each of them as it was proposed', () => {
    const test = broadcasting([1]);
    // Of 2 KiB: a block of memory for payloads holds a quarter of what is remembered.
    for (let counter = 1; counter <= 480; counter++) {
      test.proposeNow(new Uint8Array(2048).fill(counter));
      test.ack(1, `(2,${counter})`);
      test.disk();
    }
    test.sentPayloads.length = 0;
    test.connect(2);
    test.info(2, 2);
    test.ackEpoch(2, '(2,10)', 2);
    const sent = test.sentPayloads.map((payload) => readTxnEntry(new JuteReader(payload))!);
    expect(sent.map(({ header }) => counterOf(header.zxid))).toEqual(Array.from({ length: 470 }, (_, i) => i + 11));
    for (const { header, txn } of sent) {
      expect(txn).toMatchObject({ path: '/large', data: new Uint8Array(2048).fill(counterOf(header.zxid)) });
    }
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
    // The leader has nothing of epoch 2: TRUNC to (1,5) would leave the learner's txns of epoch 1.
    expect(start('(2,3)')).toBe('SNAP');
    // It denotes the initial history of epoch 3, which the leader has.
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

  test('an Apache server is sent a snapshot instead of TRUNC: truncated txns might come back (ZOOKEEPER-1549)', () => {
    const test = broadcasting([1], { history: '(1,1)..(1,5)' });
    test.join(2, '(1,9)', APACHE);
    expect(saidTo(test, 2).slice(1, 3)).toEqual(['SNAP', 'NEWLEADER (2,0)']);
    // It replays its log behind a snapshot: this one is newer than (1,9), as Apache's leaders name theirs.
    expect(test.sentSnapshots).toEqual([makeZxid(2, 0)]);
  });

  test('an Apache server is sent TRUNC while no snapshot can be newer: the epoch is not established', () => {
    // Nothing was proposed in epoch 2.
    const test = new TestLeader({ history: '(1,1)..(1,5)', currentEpoch: 2, acceptedEpoch: 2 });
    test.start();
    test.connect(2);
    test.info(2, 2, APACHE);
    test.disk();
    test.ackEpoch(2, '(1,9)', 1);
    expect(saidTo(test, 2)).toContain('TRUNC (1,5)');
  });

  test('an Apache server is never told to truncate to a placeholder: it would keep the txn behind it (row 41a)', () => {
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

  test('a gap found while catching up ends the connection, and the next one begins with a snapshot', () => {
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

  test('txns committed but not applied when a snapshot began are sent behind it', () => {
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

    test.each([1, 100])('sends a snapshot when it is known in advance (%i txns in memory)', (memory) => {
      const test = new TestLeader({ ...history, memory }).establish([1], {}, '(1,12)');
      test.join(2, '(1,8)');
      expect(saidTo(test, 2)).toEqual(['LEADERINFO (2,0)', 'SNAP', 'NEWLEADER (2,0)', 'UPTODATE']);
      // A learner that has these txns already is sent what follows.
      test.join(8, '(1,12)', OBSERVER);
      expect(saidTo(test, 8)[1]).toBe('DIFF (1,12)');
    });

    test.each([1, 100])('that the learner has already, sends the shorter ones behind it (%i in memory)', (memory) => {
      const shape = { ...history, history: '(1,1)..(1,10) (2,1)..(2,3)', currentEpoch: 2, acceptedEpoch: 2, memory };
      const test = new TestLeader(shape).establish([1], {}, '(2,3)');
      test.join(2, '(1,10)');
      const txns = ['(2,1)', '(2,2)', '(2,3)'].flatMap((zxid) => [`PROPOSAL ${zxid}`, `COMMIT ${zxid}`]);
      expect(saidTo(test, 2)).toEqual(['LEADERINFO (3,0)', 'DIFF (2,3)', ...txns, 'NEWLEADER (3,0)', 'UPTODATE']);
    });

    test('found while catching up ends the connection, and even the next leader begins with a snapshot', () => {
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
      expect([...needSnapshot]).toEqual([]);
    });
  });

  test('history is sent as the link has room, and txns dropped from memory meanwhile are read from disk', () => {
    const test = broadcasting([1], { memory: 2, options: { commitLogCount: 2 } });
    test.readBatch = 100;
    test.connect(2);
    test.info(2);
    test.narrow.add(2);
    test.ackEpoch(2, '(1,5)');
    // A learner that lacks nothing does not wait.
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

  test('txns of this epoch at an Apache server count once it acknowledges them again, behind a snapshot (4646)', () => {
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

  test('a learner that disconnects while history is read for it is forgotten', () => {
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
