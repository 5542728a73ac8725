/**
 * Elections under random faults: connections break, drop all packets and recover; messages are delayed, duplicated or
 * lost; servers crash and restart, or followers cannot reach them; leaders write txns that only some followers receive.
 *
 * After every event the guarantees of an election must hold (see the head of `election.ts`). It is also checked that
 * there is one leader per epoch, and that it has everything committed: the election and the few lines of discovery in
 * `ElectionRoles` guarantee this together. At the end all faults are healed, and every server must find the same
 * leader, and know the leases of all voters.
 */
import { type ElectionNotification, makeZxid, ServerState } from '@meerkat/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApacheElection } from '../testing/apache-election.ts';
import { ElectionEnsemble, type EnsembleShape } from '../testing/election-ensemble.ts';
import { ElectionRoles } from '../testing/election-roles.ts';
import { Election } from './election.ts';
import type { Decision } from './election-host.ts';
import { compareVotes, type Vote } from './vote.ts';

const LEASE_MS = 2000;

interface Fault {
  readonly kind: 'crash' | 'start' | 'cut' | 'swallow' | 'heal' | 'write' | 'deafen' | 'undeafen';
  readonly afterMs: number;
  readonly a: number;
  readonly b: number;
}

const fault: fc.Arbitrary<Fault> = fc.record({
  kind: fc.constantFrom(
    ...(['crash', 'start', 'start', 'cut', 'swallow', 'heal', 'heal', 'write', 'write', 'deafen', 'undeafen'] as const),
  ),
  // Some at once, some during an election, some when all is quiet.
  afterMs: fc.oneof(fc.constant(0), fc.nat(30), fc.nat(500), fc.nat(5000)),
  a: fc.nat(100),
  b: fc.nat(100),
});

const history = fc.record({
  shape: fc.constantFrom<EnsembleShape>(
    { voters: [1, 2, 3] },
    { voters: [1, 2, 3], observers: [9] },
    { voters: [1, 2, 3, 4, 5] },
    { voters: [1, 2, 3, 4, 5], observers: [8, 9] },
    { voters: [1, 2] },
    { voters: [1] },
    {
      voters: [1, 2, 3, 4, 5, 6],
      groups: [
        [1, 2],
        [3, 4],
        [5, 6],
      ],
      weights: new Map([
        [2, 0],
        [6, 3],
      ]),
    },
    {
      voters: [1, 2, 3, 4, 5],
      groups: [
        [1, 2, 3],
        [4, 5],
      ],
      weights: new Map([
        [4, 0],
        [5, 0],
      ]),
    },
  ),
  /** Bit mask of the Apache servers. */
  apache: fc.oneof(fc.constant(0), fc.nat(255)),
  lastZxids: fc.array(fc.nat(3), { minLength: 8, maxLength: 8 }),
  delayMaxMs: fc.constantFrom(1, 5, 50, 400),
  seed: fc.nat(),
  faults: fc.array(fault, { maxLength: 30, size: 'max' }),
  leaseMs: fc.constantFrom(0, LEASE_MS),
  /** With three voters: two of them never reach each other again. */
  isChain: fc.boolean(),
  /** Followers cannot reach one server until the end, if the others are a quorum. */
  staysDeaf: fc.boolean(),
});

const calm = fc.record({
  voters: fc.integer({ min: 1, max: 7 }),
  apache: fc.oneof(fc.constant(0), fc.nat(127)),
  lastZxids: fc.array(fc.nat(3), { minLength: 7, maxLength: 7 }),
  epochs: fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 7, maxLength: 7 }),
  delayMaxMs: fc.integer({ min: 1, max: 30 }),
  seed: fc.nat(),
});

type History = typeof history extends fc.Arbitrary<infer T> ? T : never;

describe('elections under faults', () => {
  it('keep their guarantees, and find one leader when everything is healed', () => {
    fc.assert(
      fc.property(history, (story) => new Play(story).run()),
      { numRuns: 2500 },
    );
  });
});

describe('elections without faults', () => {
  it('choose the best vote in the first round when all servers start together', () => {
    fc.assert(
      fc.property(calm, ({ voters: count, apache: bits, lastZxids, epochs, delayMaxMs, seed }) => {
        const voters = Array.from({ length: count }, (_, i) => i + 1);
        const random = makeRandom(seed);
        const apache = voters.filter((_, i) => (bits >> i) & 1);
        const decisions = new Map<number, Decision>();
        const ensemble = new ElectionEnsemble(
          { voters, apache },
          { onDecided: (id, decision) => decisions.set(id, decision) },
          () => 1 + (random() % delayMaxMs),
        );
        const startMs = ensemble.clock.nowMs;
        const votes = voters.map((leader, i): Vote => {
          const vote = { leader, zxid: makeZxid(1, lastZxids[i]!), peerEpoch: epochs[i]! };
          ensemble.look(leader, { lastZxid: vote.zxid, currentEpoch: vote.peerEpoch });
          return vote;
        });
        const best = votes.sort(compareVotes).at(-1)!;
        while (decisions.size < count) ensemble.step();
        const tookMs = ensemble.clock.nowMs - startMs;
        for (const { leader, round } of decisions.values()) expect([leader, round]).toEqual([best.leader, 1]);
        // All servers have the best vote after one delay, and the votes of all others after at most one more.
        if (apache.length === 0) expect(tookMs).toBeLessThanOrEqual(2 * delayMaxMs);
      }),
      { numRuns: 1000 },
    );
  });
});

class Play {
  readonly #story: History;
  readonly #roles: ElectionRoles;
  readonly #ids: readonly number[];
  readonly #random: () => number;
  /** What each server has sent to each other one, with the vote that it stood for at that time. */
  readonly #sent = new Map<string, Vote>();

  constructor(story: History) {
    this.#story = story;
    this.#random = makeRandom(story.seed);
    // An Apache observer and an Apache voter that keeps looking reply to each other endlessly (ZOOKEEPER-1807).
    const observers = story.isChain ? [] : (story.shape.observers ?? []);
    const apache = [...story.shape.voters, ...observers].filter((_, i) => (story.apache >> i) & 1);
    this.#roles = new ElectionRoles(
      { ...story.shape, apache, leaseMs: story.leaseMs },
      {
        onSent: (from, to, notification) => {
          const { state, leader, electionEpoch } = notification;
          for (const word of [notification, { state, leader, electionEpoch }]) {
            this.#sent.set(keyOf(from, to, word), this.#standingBehind(from, notification));
          }
        },
        onDecided: (id, decision) => this.#checkDecision(id, decision),
        onStep: () => this.#checkLeaders(),
      },
      () => 1 + (this.#random() % story.delayMaxMs),
    );
    this.#ids = this.#roles.ensemble.ids;
    this.#fillDisks();
  }

  run(): void {
    for (const { kind, afterMs, a, b } of this.#story.faults) {
      this.#roles.runUntil(this.#roles.ensemble.clock.nowMs + afterMs);
      const [one, other] = [this.#ids[a % this.#ids.length]!, this.#ids[b % this.#ids.length]!];
      if (kind === 'crash') this.#roles.crash(one);
      else if (kind === 'start') this.#roles.start(one);
      else if (kind === 'write') this.#roles.write(one, () => this.#random() % 3 > 0);
      else if (kind === 'deafen' || kind === 'undeafen') this.#roles.setDeaf(one, kind === 'deafen');
      else if (one !== other && kind === 'heal') this.#roles.heal(one, other, this.#random() % 2 === 0);
      else if (one !== other && kind !== 'heal') this.#roles[kind](one, other);
    }
    for (const one of this.#ids) for (const other of this.#ids) if (one < other) this.#roles.heal(one, other, false);
    const deaf = this.#chooseDeaf();
    // A leader with followers continues without the port.
    if (deaf !== null) this.#roles.crash(deaf);
    for (const id of this.#ids) this.#roles.setDeaf(id, id === deaf);
    if (this.#story.isChain && this.#story.shape.voters.length === 3) {
      this.#endAsChain();
      return;
    }
    for (const id of this.#ids) this.#roles.start(id);
    const isWhole = this.#roles.runUntilTrue(() => this.#roles.isWhole(), 30_000);
    expect(isWhole, 'all servers follow one leader').toBe(true);
    const states = this.#ids.map((id) => this.#roles.ensemble.machine(id).state);
    expect(states.filter((state) => state === ServerState.leading)).toHaveLength(1);
    if (deaf !== null) expect(this.#roles.ensemble.machine(deaf).state).not.toBe(ServerState.leading);
    const isKnown = this.#roles.runUntilTrue(() => this.#areLeasesKnown(), this.#story.delayMaxMs);
    expect(isKnown, 'all servers know the leases of all voters').toBe(true);
  }

  #areLeasesKnown(): boolean {
    const { ensemble } = this.#roles;
    const voters = this.#story.shape.voters.filter((id) => !ensemble.isApache(id));
    return this.#ids.every((id) => {
      const machine = ensemble.machine(id);
      const others = voters.filter((voter) => voter !== id);
      return (
        machine instanceof ApacheElection || others.every((other) => machine.leaseMsOf(other) === this.#story.leaseMs)
      );
    });
  }

  /** The server that followers cannot reach at the end; null for none. */
  #chooseDeaf(): number | null {
    const { ensemble } = this.#roles;
    const isSpared = (id: number): boolean =>
      ensemble.isApache(id) || !ensemble.electorate.isQuorum(this.#ids.filter((other) => other !== id));
    const deaf = this.#ids[this.#random() % this.#ids.length]!;
    return this.#story.staysDeaf && !this.#story.isChain && !isSpared(deaf) ? deaf : null;
  }

  /** One server reaches both others, which do not reach each other: it and one of them are a quorum. */
  #endAsChain(): void {
    const middle = 1 + (this.#random() % 3);
    const [one, other] = [1, 2, 3].filter((id) => id !== middle) as [number, number];
    this.#roles.cut(one, other);
    for (const id of this.#ids) this.#roles.start(id);
    expect(
      this.#roles.runUntilTrue(() => this.#roles.isServing(), 30_000),
      'a server leads',
    ).toBe(true);
    const { length } = [...this.#roles.leaderOfEpoch];
    this.#roles.runUntil(this.#roles.ensemble.clock.nowMs + 60_000);
    expect(this.#roles.leaderOfEpoch.size, 'and stays the leader').toBeLessThanOrEqual(length + 1);
  }

  /** Logs of epoch 1, of various lengths; txns that a quorum has are committed. */
  #fillDisks(): void {
    const { electorate } = this.#roles.ensemble;
    for (const [i, id] of this.#ids.entries()) {
      const lastZxid = makeZxid(1, this.#story.lastZxids[i]!);
      this.#roles.disks.set(id, { lastZxid, currentEpoch: 1, acceptedEpoch: 1 });
    }
    for (let counter = 0; counter <= 3; counter++) {
      const holders = this.#ids.filter((id) => this.#roles.disks.get(id)!.lastZxid >= makeZxid(1, counter));
      if (electorate.isQuorum(holders)) this.#roles.committed = makeZxid(1, counter);
    }
  }

  /** The vote for itself with which a server started before it sent this one. */
  #standingBehind(id: number, notification: ElectionNotification): Vote {
    const machine = this.#roles.ensemble.machine(id);
    // An Apache server resends its last notification over a new connection, however old it is.
    const isOld = machine.state !== ServerState.looking || machine.round !== notification.electionEpoch;
    if (isOld && machine instanceof ApacheElection) return notification;
    const { lastZxid, currentEpoch } = this.#roles.disks.get(id)!;
    // A server that is not a candidate has a history, but no id that another one would have to beat.
    return { leader: this.#roles.isDeaf(id) ? 0 : id, zxid: lastZxid, peerEpoch: currentEpoch };
  }

  /**
   * Several servers may lead, because each decides for itself; but a server supports only one of them, so that two
   * leaders never both have a quorum.
   */
  #checkLeaders(): void {
    const { ensemble } = this.#roles;
    const leaders = new Map<number, number[]>();
    for (const id of this.#ids) {
      if (!ensemble.isRunning(id)) continue;
      const { state, vote } = ensemble.machine(id);
      if (state === ServerState.looking) continue;
      const behind = leaders.get(vote.leader);
      if (behind === undefined) leaders.set(vote.leader, [id]);
      else behind.push(id);
    }
    if (leaders.size < 2) return;
    const withQuorum = [...leaders.values()].filter((behind) => ensemble.electorate.isQuorum(behind));
    expect(withQuorum.length, 'leaders with a quorum').toBeLessThanOrEqual(1);
  }

  #checkDecision(id: number, { state, leader, supporters }: Decision): void {
    const { electorate } = this.#roles.ensemble;
    const { round, vote } = this.#roles.ensemble.machine(id);
    const { zxid, peerEpoch } = vote;
    expect(state === ServerState.leading).toBe(leader === id);
    expect(electorate.isQuorum(supporters), 'a quorum decides').toBe(true);
    expect(electorate.canLead(leader), 'the leader can lead').toBe(true);
    const isOurs = this.#roles.ensemble.machine(id) instanceof Election;
    if (isOurs) expect(supporters.every((supporter) => electorate.voters.has(supporter))).toBe(true);

    const sent = (from: number, word: Word): Vote | undefined => this.#sent.get(keyOf(from, id, word));
    const ballot = { state: ServerState.looking, leader, electionEpoch: round };
    const didLeaderClaim = leader === id || sent(leader, { state: ServerState.leading, leader }) !== undefined;
    for (const supporter of supporters) {
      if (supporter === id) continue;
      const own = sent(supporter, { ...ballot, zxid, peerEpoch });
      if (own === undefined) {
        // It has not sent this vote in this round, so it has claimed this leader, or voted for it with another epoch.
        const words = [{ state: ServerState.following, leader }, { state: ServerState.leading, leader }, ballot];
        expect(words.some((word) => sent(supporter, word) !== undefined)).toBe(true);
        if (isOurs) expect(didLeaderClaim, 'the leader itself claims to lead').toBe(true);
      } else if (isOurs && electorate.canLead(supporter)) {
        expect(compareVotes(vote, own), 'the leader is at least as good as its voters').toBeGreaterThanOrEqual(0);
      }
    }
  }
}

type Word = Pick<ElectionNotification, 'state' | 'leader'> & Partial<ElectionNotification>;

/** Claims are identified by the leader that they name, ballots also by the round, and by the vote if given. */
function keyOf(from: number, to: number, { state, leader, electionEpoch, zxid, peerEpoch }: Word): string {
  const round = state === ServerState.looking ? ` ${electionEpoch}` : '';
  const vote = state === ServerState.looking && zxid !== undefined ? ` ${zxid} ${peerEpoch}` : '';
  return `${from}>${to} ${state} ${leader}${round}${vote}`;
}

/** mulberry32: 32 random bits from a seed. */
function makeRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
}
