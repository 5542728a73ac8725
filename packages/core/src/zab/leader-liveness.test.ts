import { Announcement, announcedLease, MAX_COUNTER } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { broadcasting, FIVE, OBSERVER, OURS, saidTo } from '../testing/broadcasting-leader.ts';
import { TestLeader } from '../testing/test-leader.ts';

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
  ])('%s ends within initLimit ticks in any case', (phase, prepare) => {
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

  test('a connection that never sends anything is closed too', () => {
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

  test('an idle ensemble closes no connection', () => {
    const test = broadcasting([1, 2]);
    test.advance(60_000, [1, 2]);
    expect(test.said().filter((text) => !text.includes('PING'))).toEqual([]);
  });

  test('a learner that waits for a commit may be silent for as long as it takes', () => {
    const test = broadcasting([1, 2, 4], { ...FIVE, options: { syncLimit: 60 } });
    test.propose();
    test.disconnect(4);
    test.connect(4);
    test.info(4, 2, OURS);
    test.ackEpoch(4, '(2,1)', 2);
    test.advance(50_000, [1, 2]);
    expect(test.said().filter((text) => /^(closes|steps)/.test(text))).toEqual([]);
    for (const id of [1, 2]) test.ack(id, '(2,1)');
    expect(saidTo(test, 4)).toEqual(['DIFF (2,1)', 'NEWLEADER (2,0)']);
  });

  test('a leader does not count a learner that waits for it and has said nothing for initLimit ticks', () => {
    const test = broadcasting([1, 2]);
    test.propose(2);
    test.disconnect(1);
    test.connect(1);
    test.info(1, 2, OURS);
    test.ackEpoch(1, '(2,1)', 2);
    test.disconnect(2);
    // Its own disk hangs: nothing is committed, and learner 1 is sent nothing.
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

  test('observers and non-members are no quorum', () => {
    const test = broadcasting([1]);
    test.join(7, '(1,5)', OBSERVER);
    test.join(8);
    test.disconnect(1);
    test.advance(1000, [7, 8]);
    expect(test.said().at(-1)).toMatch(/^steps down/);
  });

  test('after it has stepped down a leader has no effects', () => {
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
  test('chooses the highest id among the followers that have everything', () => {
    const test = new TestLeader(FIVE).establish([1, 2, 4], OURS);
    test.propose(1);
    for (const id of [1, 2]) test.ack(id, '(2,1)');
    test.handOver();
    test.take();
    test.disk();
    expect(test.said().slice(-2)).toEqual(['→ 2 HANDOVER (2,1)', 'steps down: asked to: learner 2 takes the place']);
  });

  test('ends at once when nothing is outstanding', () => {
    const test = new TestLeader().establish([1, 2], OURS);
    test.handOver();
    expect(test.said()).toEqual(['→ 2 HANDOVER (2,0)', 'steps down: asked to: learner 2 takes the place']);
  });

  test('waits at most a tick for a learner that can take over', () => {
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

  test('Apache’s servers, observers and servers without a vote or a weight are not sent HANDOVER', () => {
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

  test('before the epoch is established just steps down', () => {
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

  test('sends a ping behind UPTODATE, one more when that is answered, and then only with its heartbeat', () => {
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

  test('answers the syncs of other learners when one that waits for the same ping has gone', () => {
    const test = leased([1]);
    for (let i = 0; i < 2; i++) test.pong(1);
    for (const observer of [7, 8]) test.join(observer, '(1,5)', { ...OBSERVER, ...OURS });
    test.sync();
    for (const observer of [7, 8]) test.syncOf(observer);
    test.pong(1);
    test.disconnect(7);
    test.take();
    test.pong(1);
    expect(test.said()).toEqual(['answers sync 3', '→ 8 SYNC']);
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

  test('may answer its clients for one lease after the pings that a quorum has answered', () => {
    const test = leased([1]);
    for (let i = 0; i < 2; i++) test.pong(1);
    const sinceMs = test.clock.nowMs;
    test.advance(500);
    expect(test.leader.lease.untilMs).toBe(sinceMs + LEASE_MS);
    test.clock.nowMs += 300;
    test.pong(1);
    expect(test.leader.lease.untilMs).toBe(sinceMs + 500 + LEASE_MS);
  });

  test('does not take a ping that answers none of its own for an answer', () => {
    const test = leased([1]);
    for (let i = 0; i < 2; i++) test.pong(1);
    test.take();
    const { nowMs } = test.clock;
    const mayEnd = () => test.leader.sessionLeases.mayEnd(1, nowMs, 4000, nowMs);
    expect(mayEnd()).toBe(true);
    test.clock.nowMs += 100;
    test.pong(1);
    expect(mayEnd()).toBe(true);
    expect(test.leader.lease.untilMs).toBe(nowMs + LEASE_MS);
    expect(test.said()).toEqual([]);
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
    // Learner 2 answers an old ping; only the next one shows that it still follows.
    for (const learner of [1, 2]) test.pong(learner);
    test.advance(500);
    test.take();
    test.pong(1);
    test.pong(2);
    expect(test.said().at(-1)).toBe('→ 2 PING (2,0)');
  });
});

test('a follower that has come back within the epoch confirms syncs like one that never left, without leases', () => {
  const test = broadcasting([1, 2]);
  // Many pings, each answered.
  test.advance(30_000, [1, 2]);
  test.disconnect(1);
  test.join(1, '(1,5)');
  test.disconnect(2);
  test.sync();
  test.advance(1000, [1]);
  expect(test.said()).toContain('answers sync 1');
});

describe('a change of the membership', () => {
  test('does not let a server that has answered no ping confirm the leadership', () => {
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

  test('counts the txns behind it anew, with those who have acknowledged them already', () => {
    const test = broadcasting([1, 2, 4, 5], FIVE);
    test.proposeChange({ voters: [1, 2, 3] });
    test.propose();
    test.disk();
    test.take();
    test.ack(1, '(2,2)');
    expect(test.said()).toEqual([]);
    // The third of five for the change; two of three have the txn behind it.
    test.ack(4, '(2,1)');
    expect(test.said()).toContain('committed (2,2)');
  });

  test('counts the txns of a new voter that waits to catch up', () => {
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
