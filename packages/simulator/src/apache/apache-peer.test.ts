import { CreateMode, OpCode, parseMembership, type Zxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import type { LinkQuality } from '../link-quality.ts';
import { SeededRandom } from '../seeded-random.ts';
import { Timeline } from '../timeline.ts';
import { VirtualNetwork } from '../virtual-network.ts';
import { ApachePeer, type ApachePeerOptions } from './apache-peer.ts';

/** No segment is split or joined, so all effects are caused by the servers. */
const PLAIN_LINK: LinkQuality = { delayMinMs: 0.1, delayMaxMs: 1, splitChance: 0, mergeChance: 0 };
const DATA = new TextEncoder().encode('data');

interface EnsembleOptions extends Partial<Pick<ApachePeerOptions, 'commitLogCount' | 'isLogSyncEnabled' | 'timings'>> {
  readonly voters: number;
  readonly observers?: number;
  readonly seed?: number;
  readonly link?: LinkQuality;
}

class Ensemble {
  readonly timeline: Timeline = new Timeline();
  readonly network: VirtualNetwork;
  readonly peers: readonly ApachePeer[];
  readonly lines: string[] = [];

  constructor({ voters, observers = 0, seed = 1, link = PLAIN_LINK, ...options }: EnsembleOptions) {
    const random = new SeededRandom(seed, 'ensemble');
    this.network = new VirtualNetwork(this.timeline, random.fork('network'), link);
    const lines = Array.from({ length: voters + observers }, (_, i) => {
      const role = i < voters ? 'participant' : 'observer';
      return `server.${i + 1}=zk${i + 1}:2888:3888:${role}`;
    });
    const membership = parseMembership(lines.join('\n'));
    if ('fault' in membership) throw new Error(membership.fault);
    const { timeline, network } = this;
    this.peers = membership.members.map(
      ({ serverId }) =>
        new ApachePeer({
          ...options,
          serverId,
          membership,
          timeline,
          network,
          random: random.fork(`peer ${serverId}`),
          onLine: (line) => this.lines.push(line),
        }),
    );
  }

  start(): void {
    for (const peer of this.peers) peer.start();
  }

  peer(serverId: number): ApachePeer {
    return this.peers[serverId - 1]!;
  }

  get leader(): ApachePeer {
    const leaders = this.peers.filter((peer) => peer.leader !== null && peer.isServing);
    if (leaders.length !== 1) throw new Error(`there are ${leaders.length} leaders:\n${this.lines.join('\n')}`);
    return leaders[0]!;
  }

  get followers(): readonly ApachePeer[] {
    return this.peers.filter((peer) => peer.isServing && peer.leader === null);
  }

  /** Advances virtual time. */
  advance(ms: number): void {
    const endMs = this.timeline.nowMs + ms;
    while (this.timeline.step(endMs));
  }

  /** Runs until a condition holds; throws after `limitMs`. */
  until(what: () => boolean, limitMs = 60_000): void {
    const endMs = this.timeline.nowMs + limitMs;
    while (!what()) {
      if (!this.timeline.step(endMs)) throw new Error(`did not happen within ${limitMs} ms:\n${this.lines.join('\n')}`);
    }
  }

  untilAllServe(): void {
    this.until(() => this.peers.every((peer) => !peer.isRunning || peer.isServing));
  }

  /** The leader proposes `count` txns, and every running server applies them. */
  write(count: number): Zxid {
    const before = this.leader.database.lastProcessedZxid;
    if (count === 0) return before;
    for (let i = 0; i < count; i++) this.propose();
    this.until(() => this.peers.every((peer) => !peer.isRunning || peer.database.lastProcessedZxid >= before + count));
    return this.leader.database.lastProcessedZxid;
  }

  #name = 0;

  propose(from: ApachePeer = this.leader): void {
    const txn = { path: `/n${this.#name++}`, data: DATA, acl: [], isEphemeral: false, parentCversion: this.#name };
    expect(from.propose({ type: OpCode.create, ...txn })).not.toBeNull();
  }

  expectNoComplaints(): void {
    expect(this.peers.flatMap((peer) => peer.complaints)).toEqual([]);
  }

  /** All serving servers have the same tree, and there are no complaints. */
  expectAgreement(): void {
    const trees = this.peers.filter((p) => p.isServing).map(({ database: d }) => [...d.znodes.keys()].sort().join(' '));
    expect(new Set(trees).size).toBe(1);
    this.expectNoComplaints();
  }
}

describe('an ensemble of servers of 3.8.0', () => {
  test.each([
    { voters: 3, observers: 0 },
    { voters: 5, observers: 0 },
    { voters: 3, observers: 2 },
  ])('of $voters voters and $observers observers elects the highest id and replicates', (size) => {
    const ensemble = new Ensemble(size);
    ensemble.start();
    ensemble.untilAllServe();
    expect(ensemble.leader.serverId).toBe(size.voters);
    ensemble.write(20);
    ensemble.advance(20_000);
    ensemble.expectAgreement();
    expect(ensemble.followers).toHaveLength(size.voters + size.observers - 1);
    expect(new Set(ensemble.peers.map((peer) => peer.epoch))).toEqual(new Set([1]));
  });
});

describe('a server of 3.8.0 that comes back', () => {
  test('after the leader dies the others continue in the next epoch, and it catches up with DIFF', () => {
    const ensemble = new Ensemble({ voters: 3 });
    ensemble.start();
    ensemble.untilAllServe();
    ensemble.write(5);
    const old = ensemble.leader;
    old.kill();
    ensemble.until(() => ensemble.peers.some((peer) => peer !== old && peer.leader !== null && peer.isServing));
    ensemble.untilAllServe();
    expect(ensemble.leader.serverId).toBe(2);
    expect(ensemble.leader.epoch).toBe(2);
    ensemble.write(5);
    old.start();
    ensemble.untilAllServe();
    expect(old.learner?.mode).toBe('diff');
    ensemble.write(1);
    ensemble.advance(20_000);
    ensemble.expectAgreement();
    expect(old.applied).toHaveLength(11);
  });

  test('of five, two may die at once, and a leader without a quorum ends its role', () => {
    const ensemble = new Ensemble({ voters: 5 });
    ensemble.start();
    ensemble.untilAllServe();
    ensemble.write(3);
    ensemble.peer(5).powerOff();
    ensemble.peer(1).powerOff();
    ensemble.until(() => ensemble.peer(4).leader !== null && ensemble.peer(4).isServing);
    ensemble.untilAllServe();
    ensemble.write(3);
    ensemble.peer(2).powerOff();
    ensemble.until(() => ensemble.peers.every((peer) => !peer.isServing));
    ensemble.peer(5).start();
    ensemble.untilAllServe();
    ensemble.peer(1).start();
    ensemble.peer(2).start();
    ensemble.untilAllServe();
    ensemble.write(3);
    ensemble.expectAgreement();
  });

  test('lacks more than the leader holds in memory, and gets a snapshot', () => {
    const ensemble = new Ensemble({ voters: 3, commitLogCount: 4 });
    ensemble.start();
    ensemble.untilAllServe();
    const sessionId = ensemble.leader.createSession().sessionId;
    ensemble.advance(100);
    ensemble.peer(1).kill();
    ensemble.write(9);
    ensemble.peer(1).start();
    ensemble.untilAllServe();
    expect(ensemble.peer(1).learner?.mode).toBe('snap');
    expect([...ensemble.peer(1).database.sessions]).toEqual([[sessionId, 30_000]]);
    ensemble.write(1);
    ensemble.expectAgreement();
    // A received snapshot survives a restart.
    ensemble.peer(1).powerOff();
    ensemble.peer(1).start();
    ensemble.untilAllServe();
    ensemble.write(1);
    ensemble.expectAgreement();
  });

  test('lacks more than the leader holds in memory, and is caught up from the log where that is short enough', () => {
    const ensemble = new Ensemble({ voters: 3, commitLogCount: 4, isLogSyncEnabled: true });
    ensemble.start();
    ensemble.untilAllServe();
    ensemble.write(1);
    ensemble.peer(1).kill();
    ensemble.write(9);
    ensemble.peer(1).start();
    ensemble.untilAllServe();
    expect(ensemble.peer(1).learner?.mode).toBe('diff');
    ensemble.write(1);
    ensemble.expectAgreement();
    expect(ensemble.peer(1).applied).toHaveLength(11);
  });

  test.each([
    { mode: 'trunc', writes: 0, what: 'truncates them' },
    { mode: 'snap', writes: 2, what: 'gets a snapshot where the leader would have to truncate across an epoch' },
  ])('has proposals that no other server has, and $what', ({ mode, writes }) => {
    const ensemble = new Ensemble({ voters: 3 });
    ensemble.start();
    ensemble.untilAllServe();
    ensemble.write(3);
    const old = ensemble.leader;
    ensemble.network.partition([old.host], ['zk1', 'zk2']);
    ensemble.propose(old);
    ensemble.propose(old);
    ensemble.advance(100);
    expect(old.disk.log).toHaveLength(5);
    old.kill();
    ensemble.until(() => ensemble.peers.some((peer) => peer !== old && peer.leader !== null && peer.isServing));
    ensemble.untilAllServe();
    ensemble.write(writes);
    ensemble.network.heal();
    old.start();
    ensemble.untilAllServe();
    expect(old.learner?.mode).toBe(mode);
    ensemble.write(1);
    ensemble.expectAgreement();
  });
});

describe('requests', () => {
  test('of a follower, an observer and the leader are answered where they were asked', () => {
    const ensemble = new Ensemble({ voters: 3, observers: 1 });
    ensemble.start();
    ensemble.untilAllServe();
    for (const serverId of [1, 3, 4]) {
      const peer = ensemble.peer(serverId);
      const session = peer.createSession();
      ensemble.until(() => session.outcome !== null);
      const create = peer.create(session.sessionId, `/of${serverId}`, DATA, CreateMode.ephemeral);
      const again = peer.create(session.sessionId, `/of${serverId}`, DATA);
      const sync = peer.sync(session.sessionId);
      ensemble.until(() => sync.outcome !== null && again.outcome !== null);
      expect(create.outcome).toMatchObject({ txn: { type: OpCode.create, isEphemeral: true } });
      expect(again.outcome).toMatchObject({ txn: { type: OpCode.error, error: -110 } });
      if (serverId !== 3) expect(sync.outcome).toMatchObject({ zxid: peer.database.lastProcessedZxid });
    }
    ensemble.advance(1000);
    ensemble.expectAgreement();
    // A silent client loses its session and its ephemerals.
    ensemble.peer(1).forgetSession(ensemble.peer(1).requests[0]!.sessionId);
    ensemble.advance(60_000);
    expect([...ensemble.peer(4).database.znodes.keys()].filter((path) => path.startsWith('/of'))).toEqual([
      '/of3',
      '/of4',
    ]);
    ensemble.expectAgreement();
  });

  test('for a session that another server opened are answered once that session has moved', () => {
    const ensemble = new Ensemble({ voters: 3 });
    ensemble.start();
    ensemble.untilAllServe();
    const session = ensemble.peer(1).createSession();
    ensemble.until(() => session.outcome !== null);
    const early = ensemble.peer(2).create(session.sessionId, '/early', DATA);
    ensemble.until(() => early.outcome !== null);
    expect(early.outcome).toMatchObject({ txn: { type: OpCode.error, error: -118 } });
    ensemble.peer(2).revalidate(session.sessionId, 30_000);
    ensemble.peer(2).revalidate(99n, 30_000);
    ensemble.until(() => ensemble.peer(2).revalidations.length === 2);
    expect(ensemble.peer(2).revalidations.map(({ isValid }) => isValid)).toEqual([true, false]);
    const late = ensemble.peer(2).create(session.sessionId, '/late', DATA);
    ensemble.until(() => late.outcome !== null);
    expect(late.outcome).toMatchObject({ txn: { type: OpCode.create } });
  });

  test('of type 13 outside a multi are forwarded, and a 3.8.0 leader would propose an undecodable txn', () => {
    const ensemble = new Ensemble({ voters: 3 });
    ensemble.start();
    ensemble.untilAllServe();
    const session = ensemble.peer(1).createSession();
    ensemble.until(() => session.outcome !== null);
    const check = ensemble.peer(1).request(OpCode.check, new Uint8Array(8), { sessionId: session.sessionId });
    ensemble.until(() => check.outcome !== null);
    expect(ensemble.leader.complaints).toEqual([expect.stringContaining('type 13')]);
  });
});

describe('the same seed', () => {
  test.each([1, 2, 3])('gives the same events, also where the network splits and delays (%i)', (seed) => {
    const run = () => {
      const link = { delayMinMs: 0.1, delayMaxMs: 30, splitChance: 0.1, mergeChance: 0.1 };
      const ensemble = new Ensemble({ voters: 5, observers: 1, seed, link });
      ensemble.start();
      ensemble.untilAllServe();
      ensemble.write(10);
      ensemble.leader.kill();
      ensemble.advance(30_000);
      ensemble.expectAgreement();
      return ensemble.lines.join('\n');
    };
    expect(run()).toBe(run());
  });
});
