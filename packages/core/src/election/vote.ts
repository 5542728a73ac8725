/**
 * A vote proposes a leader and states how recent that server's history is. The latest adopted epoch wins, then the
 * latest zxid, then the highest id (FastLeaderElection.totalOrderPredicate).
 *
 *     peerEpoch ──► zxid ──► leader          each decides only when all before it are equal
 *
 * The epoch comes first because a zxid of an old epoch may never have reached a quorum.
 */
import { VOTE_NONE, ZXID_NONE, ZXID_VOTE_NONE, type Zxid } from '@meerkat/protocol';

export interface Vote {
  /** Server id of the proposed leader; VOTE_NONE when the sender has no candidate to propose. */
  readonly leader: number;
  /** Last zxid in the proposed leader's log. */
  readonly zxid: Zxid;
  /** Epoch whose history the proposed leader has adopted (its `currentEpoch`). */
  readonly peerEpoch: number;
}

/** Worse than every other vote; observers start with it. */
export const NO_VOTE: Vote = { leader: VOTE_NONE, zxid: ZXID_VOTE_NONE, peerEpoch: VOTE_NONE };

/** Negative when `a` is worse than `b`, 0 when they are the same vote, positive when `a` is better. */
export function compareVotes(a: Vote, b: Vote): number {
  if (a.peerEpoch !== b.peerEpoch) return a.peerEpoch < b.peerEpoch ? -1 : 1;
  if (a.zxid !== b.zxid) return a.zxid < b.zxid ? -1 : 1;
  if (a.leader !== b.leader) return a.leader < b.leader ? -1 : 1;
  return 0;
}

export function isSameVote(a: Vote, b: Vote): boolean {
  return a.leader === b.leader && a.zxid === b.zxid && a.peerEpoch === b.peerEpoch;
}

/**
 * True for a vote for a server whose data directory is empty and must not be taken for an empty service
 * (`zookeeper.db.autocreate=false` and no `initialize` file). Such a vote is neither counted nor elected.
 */
export function isUntrusted(vote: Vote): boolean {
  return vote.zxid === ZXID_NONE;
}
