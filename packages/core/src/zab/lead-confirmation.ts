/**
 * Learns from answers to pings whether a quorum still follows the leader. This answers syncs, grants leases, and
 * decides which sessions may end.
 *
 *     a ping to each voter ──► its answer ─┬─► SyncRounds      a quorum has answered: syncs that came before are answered
 *                                          ├─► LeaderLease     this server may answer its clients for a while
 *                                          └─► LearnerAnswers  what the learner may have answered its own
 */
import { ZXID_NONE } from '@meerkat/protocol';
import type { Clock } from '../base/ports.ts';
import type { Electorate } from '../election/electorate.ts';
import { type AnswerLease, LeaderLease } from './answer-lease.ts';
import type { LeaderEffects } from './leader-host.ts';
import { LearnerAnswers, type SessionLeases } from './learner-answers.ts';
import type { LearnerFeed } from './learner-feed.ts';
import { type LearnerPeer, PeerState } from './learner-peer.ts';
import type { LearnerPeers } from './learner-peers.ts';
import type { Proposals } from './proposals.ts';
import { SyncRounds } from './sync-rounds.ts';
import type { ZabOptions } from './zab-options.ts';

/**
 * The ping after UPTODATE, counting NEWLEADER as the first. The lease that it grants dates from the ACK of NEWLEADER.
 */
const FIRST_PING = 2;

export class LeadConfirmation {
  readonly #leaseMs: number;
  readonly #clock: Clock;
  readonly #peers: LearnerPeers;
  readonly #proposals: Proposals;
  readonly #feed: LearnerFeed;
  readonly #effects: Pick<LeaderEffects, 'synced'>;
  readonly #rounds: SyncRounds;
  readonly #lease: LeaderLease;
  readonly #answers: LearnerAnswers;

  constructor(
    { serverId, leaseMs }: ZabOptions,
    clock: Clock,
    electorate: Electorate,
    peers: LearnerPeers,
    proposals: Proposals,
    feed: LearnerFeed,
    effects: Pick<LeaderEffects, 'synced'>,
  ) {
    this.#leaseMs = leaseMs;
    this.#clock = clock;
    this.#peers = peers;
    this.#proposals = proposals;
    this.#feed = feed;
    this.#effects = effects;
    this.#rounds = new SyncRounds(serverId, electorate);
    this.#lease = new LeaderLease(serverId, electorate, leaseMs);
    this.#answers = new LearnerAnswers(leaseMs);
  }

  /** How long this server may answer its own clients. */
  get lease(): AnswerLease {
    return this.#lease;
  }

  /** Which sessions may end, as far as learners have answered them. */
  get sessionLeases(): SessionLeases {
    return this.#answers;
  }

  get lastSynced(): number {
    return this.#rounds.lastAnswered;
  }

  /** @returns a ticket, see `Broadcast` */
  sync(): number {
    return this.#rounds.add(this.#proposals.lastTxn, this.#proposals.applied);
  }

  /** The ACK of NEWLEADER counts as an answer to a ping. */
  onNewLeaderAck(peer: LearnerPeer): void {
    const askedMs = peer.pings.onAnswered();
    if (peer.isVoter && askedMs !== null) this.#lease.onAnswered(peer.serverId, askedMs);
  }

  /** A learner is about to be told to serve. */
  onServing(peer: LearnerPeer): void {
    peer.round = this.#rounds.round;
    peer.owed = ZXID_NONE;
  }

  /** A learner was told to serve. One that holds leases may answer clients from its first ping on. */
  onServed(peer: LearnerPeer, nowMs: number): void {
    if (peer.pings.leaseMs === 0) return;
    this.#answers.onServing(peer.serverId, nowMs);
    this.ping(peer);
  }

  /** The set of voters has changed. `onVoter` follows for each learner that votes. */
  onElectorateChanged(): void {
    this.#lease.onElectorateChanged(this.#clock.monotonicMs());
  }

  /** A learner is a voter, possibly a new one: what it has confirmed counts. */
  onVoter(peer: LearnerPeer): void {
    this.#rounds.onAnswer(peer.serverId, peer.confirmedRound);
  }

  /** The turn ends: one ping to every voter confirms all syncs received in it. */
  onTurnEnd(): void {
    if (this.#rounds.isRoundDue) this.pingFollowers();
  }

  pingFollowers(): void {
    this.#rounds.beginRound();
    for (const peer of this.#peers.followers) this.ping(peer);
  }

  /** Skips learners that do not serve yet: they answer no ping. */
  ping(peer: LearnerPeer): void {
    if (peer.state !== PeerState.serving) return;
    if (this.#leaseMs === 0) {
      this.#feed.ping(peer);
    } else if (peer.pings.askedMs === null) {
      const nowMs = this.#clock.monotonicMs();
      const confirms = peer.pings.leaseMs === 0 || nowMs <= this.#lease.untilMs;
      peer.pings.ask(nowMs, this.#rounds.round, confirms);
      this.#feed.ping(peer, confirms);
    }
  }

  /** @param isComplete the answer lists all sessions that were active at the learner */
  onPong(peer: LearnerPeer, isComplete: boolean): void {
    if (this.#leaseMs > 0) this.#onAnswer(peer, isComplete);
    else this.#onUncountedPong(peer);
  }

  #onAnswer(peer: LearnerPeer, isComplete: boolean): void {
    const { pings, serverId } = peer;
    const askedMs = pings.onAnswered();
    if (askedMs === null) return;
    if (isComplete) this.#answers.onAnswered(serverId, askedMs, this.#clock.monotonicMs());
    if (peer.isVoter) this.#lease.onAnswered(serverId, askedMs);
    if (peer.isVoter && pings.round > peer.round) {
      peer.round = pings.round;
      peer.confirmedRound = peer.round;
      this.#rounds.onAnswer(serverId, peer.round);
      this.answerSyncs();
    }
    const isAwaited = peer.isVoter && this.#rounds.round > pings.round;
    const canConfirm = !pings.confirms && this.#clock.monotonicMs() <= this.#lease.untilMs;
    if (isAwaited || canConfirm || pings.answered === FIRST_PING) this.ping(peer);
  }

  /** Without leases pings overlap, and are answered in their order. */
  #onUncountedPong(peer: LearnerPeer): void {
    if (peer.isObserver || peer.round >= this.#rounds.round) return;
    peer.round++;
    this.#rounds.onAnswer(peer.serverId, peer.round);
    peer.confirmedRound = peer.round;
    this.answerSyncs();
  }

  /** Answers the syncs that a quorum has confirmed and whose txns are applied. */
  answerSyncs(): void {
    const ticket = this.#rounds.takeAnswered(this.#proposals.applied);
    if (ticket === null) return;
    this.#effects.synced(ticket);
    this.#feed.onSynced(ticket);
  }

  forget(peer: LearnerPeer): void {
    if (peer.pings.leaseMs > 0) this.#answers.onClosed(peer.serverId);
    if (!peer.isVoter) return;
    this.#lease.forget(peer.serverId);
    this.#rounds.forget(peer.serverId);
  }
}
