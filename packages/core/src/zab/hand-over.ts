/** Who takes the place of a leader that hands over, and when. */
import type { Zxid } from '@meerkat/protocol';
import type { Electorate } from '../election/electorate.ts';
import { type LearnerPeer, PeerState } from './learner-peer.ts';
import type { Proposals } from './proposals.ts';

/** A leader is about to leave its place, and proposes nothing more. */
export class HandOver {
  /** The latest moment to leave, on the monotonic clock. */
  readonly endsMs: number;
  readonly #reason: string;

  constructor(reason: string, endsMs: number) {
    this.#reason = reason;
    this.endsMs = endsMs;
  }

  /**
   * @param isLate the time is up: whoever has everything now, or nobody
   * @returns how it ends; null while a learner that can take the place does not have everything yet
   */
  conclude(
    followers: readonly LearnerPeer[],
    electorate: Electorate,
    { applied, lastTxn }: Pick<Proposals, 'applied' | 'lastTxn'>,
    isLate: boolean,
  ): { readonly successor: LearnerPeer | null; readonly reason: string } | null {
    const isComplete = applied === lastTxn;
    if (!isComplete && !isLate) return null;
    const candidates = followers.filter((peer) => isCandidate(peer, electorate));
    const successor = chooseSuccessor(candidates, lastTxn);
    if (isComplete && successor !== null) {
      return { successor, reason: `${this.#reason}: learner ${successor.serverId} takes the place` };
    }
    if (!isLate && candidates.length > 0) return null;
    return { successor: null, reason: `${this.#reason}: no learner can take the place` };
  }
}

/** True of a follower that understands HANDOVER and may lead. Apache's servers do not, and are told nothing. */
function isCandidate(peer: LearnerPeer, electorate: Electorate): boolean {
  const { isVoter, takesHandOver, serverId, state } = peer;
  return isVoter && takesHandOver && state === PeerState.serving && electorate.canLead(serverId);
}

/**
 * The candidate with the highest id among those whose log holds everything; null when there is none yet. It wins the
 * election that follows: nobody has more, and it stands first.
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
