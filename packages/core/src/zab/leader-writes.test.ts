import { makeZxid, OpCode, PacketType } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { bytesOf } from '../../../protocol/src/testing/byte-list.ts';
import { APACHE, broadcasting, FIVE, OBSERVER, OURS, saidTo } from '../testing/broadcasting-leader.ts';
import { formatPair } from '../testing/history-text.ts';
import { TestLeader } from '../testing/test-leader.ts';

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

  test('the host is notified once of what each server has on its disk', () => {
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

  test('an ACK that commits several txns sends one COMMIT to our followers, and one per txn to Apache’s', () => {
    for (const [info, sent] of [
      [OURS, ['COMMIT (2,3)']],
      [APACHE, ['COMMIT (2,1)', 'COMMIT (2,2)', 'COMMIT (2,3)']],
    ] as const) {
      const test = broadcasting([1], {}, info);
      test.propose(3);
      test.disk();
      test.take();
      test.ack(1, '(2,3)');
      expect(saidTo(test, 1)).toEqual(sent);
    }
  });

  test('txns are committed in order, regardless of the order of their ACKs', () => {
    const test = broadcasting([1, 2], FIVE);
    test.propose(3);
    test.disk();
    test.take();
    test.ack(1, '(2,3)');
    test.ack(2, '(2,1)');
    expect(test.said()).toEqual(['→ 1 COMMIT (2,1)', '→ 2 COMMIT (2,1)', 'committed (2,1)']);
    test.ack(2, '(2,3)');
    expect(test.said().filter((text) => text.startsWith('→ 1') || text.startsWith('committed'))).toEqual([
      '→ 1 COMMIT (2,3)',
      'committed (2,3)',
    ]);
  });

  test('ACKs of other epochs, of unproposed txns, and old ones are ignored (CCF 5674)', () => {
    const test = broadcasting([1]);
    test.propose(2);
    test.disk();
    test.take();
    for (const zxid of ['(1,5)', '(1,9)', '(2,3)', '(3,1)', '(9,9)']) test.ack(1, zxid);
    expect(test.said()).toEqual([]);
    test.ack(1, '(2,2)');
    test.ack(1, '(2,1)');
    test.ack(1, '(2,2)');
    expect(test.said()).toEqual(['→ 1 COMMIT (2,2)', 'committed (2,2)']);
  });

  test('ACKs of non-members and observers do not count', () => {
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

  test('an observer is sent committed txns only', () => {
    const test = broadcasting([1]);
    test.join(7, '(1,5)', OBSERVER);
    test.propose(1);
    test.disk();
    test.take();
    test.ack(1, '(2,1)');
    expect(saidTo(test, 7)).toEqual(['INFORM (2,1)']);
  });

  test('the host may propose while handling an effect', () => {
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

  test('requests are forwarded to the host once their learner serves', () => {
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

  test('answers to pings that were never sent do not count', () => {
    const test = broadcasting([1]);
    for (let i = 0; i < 5; i++) test.pong(1);
    test.sync();
    expect(test.said()).toEqual(['→ 1 PING (2,0)']);
    test.pong(1);
    expect(test.said()).toEqual(['answers sync 1']);
  });

  test('the answer of a closed connection does not count', () => {
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

  test('observers and non-members confirm nothing', () => {
    const test = broadcasting([1]);
    test.join(7, '(1,5)', OBSERVER);
    test.join(8);
    test.sync();
    test.take();
    test.pong(8);
    test.pong(7);
    expect(test.said()).toEqual([]);
  });

  test('is answered at once if this server is a quorum by itself', () => {
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
    // The followers are a quorum and keep committing, but the answer to the sync waits for the leader's disk.
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

  test('keeps the txns that an Apache learner waits for although they are dropped from the log in memory', () => {
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
    expect(test.leader.hasSentCommit(link, test.leader.lastTxn)).toBe(true);
    test.syncOf(7);
    test.propose(1);
    expect(test.leader.hasSentCommit(link, makeZxid(2, 1))).toBe(false);
    test.disk();
    test.ack(1, '(2,1)');
    expect(test.leader.hasSentCommit(link, makeZxid(2, 1))).toBe(false);
    test.pong(1);
    expect(test.leader.hasSentCommit(link, makeZxid(2, 1))).toBe(true);
  });

  test('of a closed connection is not answered, not even over the next connection of that server', () => {
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

  test('that waits does not delay the leader’s stepping down', () => {
    const test = broadcasting([1], {}, APACHE);
    test.syncOf(1);
    test.propose(1);
    test.take();
    test.handOver();
    test.ack(1, '(2,1)');
    test.advance(1000, [1]);
    expect(test.said().at(-1)).toMatch(/^steps down/);
  });

  test('is answered at once if this server is a quorum by itself', () => {
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

  test('an Apache learner is closed when too many bytes wait for its SYNC', () => {
    const test = broadcasting([1]);
    test.join(7, '(1,5)', { ...OBSERVER, ...APACHE });
    test.syncOf(7);
    // No learner answers pings.
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
