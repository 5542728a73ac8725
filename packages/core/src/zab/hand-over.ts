/** Who takes the place of a leader that hands over. */
import type { Zxid } from '@meerkat/protocol';
import type { Electorate } from '../election/electorate.ts';
import { type LearnerPeer, PeerState } from './learner-peer.ts';

/** True of a follower that understands HANDOVER and may lead. Apache's servers do not, and are told nothing. */
export function isCandidate(peer: LearnerPeer, electorate: Electorate): boolean {
  const { isVoter, takesHandOver, serverId, state } = peer;
  return isVoter && takesHandOver && state === PeerState.serving && electorate.canLead(serverId);
}

/**
 * The candidate with the highest id among those whose log holds everything; null when there is none yet. It wins the
 * election that follows: nobody has more, and it stands first.
 *
 * @param lastTxn the last txn of the leader's history
 */
export function chooseSuccessor(candidates: readonly LearnerPeer[], lastTxn: Zxid): LearnerPeer | null {
  let successor: LearnerPeer | null = null;
  for (const peer of candidates) {
    const isComplete = peer.acked >= lastTxn;
    if (isComplete && (successor === null || peer.serverId > successor.serverId)) successor = peer;
  }
  return successor;
}
