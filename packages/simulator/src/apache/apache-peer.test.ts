import { OpCode, parseMembership, type Zxid } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { SeededRandom } from '../seeded-random.ts';
import { Timeline } from '../timeline.ts';
import { type LinkQuality, VirtualNetwork } from '../virtual-network.ts';
import { ApachePeer, type ApachePeerOptions } from './apache-peer.ts';

/** No segment is split or joined: what happens then is the servers' doing. */
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

  /** Virtual time passes. */
  advance(ms: number): void {
    const endMs = this.timeline.nowMs + ms;
    while (this.timeline.step(endMs));
  }

  /** Until something holds, or too long. */
  until(what: () => boolean, limitMs = 60_000): void {
    const endMs = this.timeline.nowMs + limitMs;
    while (!what()) {
      if (!this.timeline.step(endMs)) throw new Error(`did not happen within ${limitMs} ms:\n${this.lines.join('\n')}`);
    }
  }

  untilAllServe(): void {
    this.until(() => this.peers.every((peer) => !peer.isRunning || peer.isServing));
  }

  /** The leader proposes so many txns, and everybody who runs applies them. */
  write(count: number): Zxid {
    const before = this.leader.database.lastProcessedZxid;
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

  /** Everybody who serves has the same tree and has applied the same txns. */
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
