/** Which follower succeeds a leader that hands over, and when. */
import { PacketType, type Zxid } from '@meerkat/protocol';
import type { Clock } from '../base/ports.ts';
import type { Electorate } from '../election/electorate.ts';
import type { LeaderEffects } from './leader-host.ts';
import { type LearnerPeer, PeerState } from './learner-peer.ts';
import type { LearnerPeers } from './learner-peers.ts';
import type { Proposals } from './proposals.ts';

const NEVER = Number.POSITIVE_INFINITY;

/** Hands over leadership: the leader stops proposing, and waits at most a tick for a follower that has everything. */
export class HandOver {
  readonly #clock: Clock;
  readonly #waitMs: number;
  readonly #electorate: Electorate;
  readonly #peers: LearnerPeers;
  readonly #proposals: Pick<Proposals, 'applied' | 'lastTxn' | 'lastProposed'>;
  readonly #effects: Pick<LeaderEffects, 'send'>;
  readonly #onEnd: (reason: string) => void;
  #reason: string | null = null;
  #endsMs = NEVER;

  /**
   * @param waitMs how long to wait for a follower that has everything
   * @param onEnd this server no longer leads; HANDOVER has been sent if there is a successor
   */
  constructor(
    clock: Clock,
    waitMs: number,
    electorate: Electorate,
    peers: LearnerPeers,
    proposals: Pick<Proposals, 'applied' | 'lastTxn' | 'lastProposed'>,
    effects: Pick<LeaderEffects, 'send'>,
    onEnd: (reason: string) => void,
  ) {
    this.#clock = clock;
    this.#waitMs = waitMs;
    this.#electorate = electorate;
    this.#peers = peers;
    this.#proposals = proposals;
    this.#effects = effects;
    this.#onEnd = onEnd;
  }

  get isBegun(): boolean {
    return this.#reason !== null;
  }

  /** Deadline for leaving, on the monotonic clock; Infinity until the hand-over begins. */
  get endsMs(): number {
    return this.#endsMs;
  }

  begin(reason: string): void {
    if (this.#reason !== null) return;
    this.#reason = reason;
    this.#endsMs = this.#clock.monotonicMs() + this.#waitMs;
  }

  /** Finishes a hand-over that has begun, if a follower can take over or none ever can. */
  maybeFinish(): void {
    if (this.#reason !== null) this.#finish(this.#reason, false);
  }

  /** The deadline has passed: a follower that has everything takes over, or none does. */
  onLate(): void {
    if (this.#reason !== null) this.#finish(this.#reason, true);
  }

  #finish(why: string, isLate: boolean): void {
    const end = this.#conclude(why, isLate);
    if (end === null) return;
    const { successor, reason } = end;
    if (successor !== null) {
      this.#effects.send(successor.link, { type: PacketType.handOver, zxid: this.#proposals.lastProposed });
    }
    this.#onEnd(reason);
  }

  /** The leader has stepped down. */
  stop(): void {
    this.#reason = null;
    this.#endsMs = NEVER;
  }

  /** @returns how it ends; null while proposals are outstanding or a candidate is still behind, before the deadline */
  #conclude(why: string, isLate: boolean): { readonly successor: LearnerPeer | null; readonly reason: string } | null {
    const { applied, lastTxn } = this.#proposals;
    const isComplete = applied === lastTxn;
    if (!isComplete && !isLate) return null;
    const candidates = this.#peers.followers.filter((peer) => isCandidate(peer, this.#electorate));
    const successor = chooseSuccessor(candidates, lastTxn);
    if (isComplete && successor !== null) {
      return { successor, reason: `${why}: learner ${successor.serverId} takes the place` };
    }
    if (!isLate && candidates.length > 0) return null;
    return { successor: null, reason: `${why}: no learner can take the place` };
  }
}

/** True of a follower that understands HANDOVER and may lead. Apache's servers do not, and are not sent it. */
function isCandidate(peer: LearnerPeer, electorate: Electorate): boolean {
  const { isVoter, takesHandOver, serverId, state } = peer;
  return isVoter && takesHandOver && state === PeerState.serving && electorate.canLead(serverId);
}

/**
 * The candidate with the highest id among those whose log holds everything; null when there is none yet. It wins the
 * election that follows: no server has a longer log, and it is the first to stand.
 *
 * @param lastTxn the last txn of the leader's history
 */
function chooseSuccessor(candidates: readonly LearnerPeer[], lastTxn: Zxid): LearnerPeer | null {
  let successor: LearnerPeer | null = null;
  for (const peer of candidates) {
    const isComplete = peer.acked >= lastTxn;
    if (isComplete && (successor === null || peer.serverId > successor.serverId)) successor = peer;
  }
  return successor;
}
