/**
 * What an established leader does about a voter that has promised a later epoch, or has a later history.
 *
 * A voter that has promised a later epoch, to a leader that came to nothing, can follow no leader of this one: it would
 * knock in vain as long as this one leads. A new epoch takes it in. Not before `syncLimit` ticks have passed for each
 * epoch by which it is ahead, so that such voters never keep the ensemble from its work, nor use up its epochs.
 *
 * The next leader may find its quorum before that voter is heard. So this server promises the same first: the epoch that
 * follows is later than any that one of them has accepted, and not just the next of many that leave the voter out.
 *
 * One whose history is of a later epoch is another matter: to make way for its promise would be to replace its history.
 */
import type { HeardVotes } from './leader-host.ts';
import type { LearnerPeer } from './learner-peer.ts';
import { isLeadBelieved } from './promises.ts';

/** Of the leader that such a voter comes to. */
export interface Reign {
  readonly epoch: number;
  /** Milliseconds since the epoch was established; null before. */
  readonly ledMs: number | null;
  readonly syncLimitMs: number;
}

export class LaterPromises {
  readonly #heardVotes: HeardVotes;
  /** A new epoch is wanted for somebody who has accepted one that is later than ours: first this server does. */
  #pendingEpochBump: { readonly accepted: number; readonly reason: string } | null = null;

  constructor(heardVotes: HeardVotes) {
    this.#heardVotes = heardVotes;
  }

  /** Why this leader is to hand over once it has accepted the same epoch; null while there is no reason. */
  get pendingEpochBump(): { readonly accepted: number; readonly reason: string } | null {
    return this.#pendingEpochBump;
  }

  /** @returns true when this leader makes way: it is to accept that epoch now */
  maybeBump(peer: LearnerPeer, accepted: number, { epoch, ledMs, syncLimitMs }: Reign): boolean {
    const historyEpoch = peer.outlastsOlderEpochs ? epoch : this.#heardVotes.historyEpochOf(peer.serverId);
    const isMerePromise = historyEpoch !== null && historyEpoch <= epoch;
    if (!isMerePromise || ledMs === null) return false;
    if (!isLeadBelieved(accepted - epoch, ledMs, syncLimitMs)) return false;
    if (this.#pendingEpochBump !== null && this.#pendingEpochBump.accepted >= accepted) return false;
    const reason = `${peer.name} has accepted epoch ${accepted} and cannot follow in epoch ${epoch}`;
    this.#pendingEpochBump = { accepted, reason };
    return true;
  }
}

/**
 * Why a leader makes way for a voter that stands for election with a history of a later epoch; null when it does not.
 *
 * While a quorum follows the leader there is no later history than its own, unless servers of that quorum have lost their
 * disks: then the longer one should win. The leader steps down, and promises nothing for the other one's sake: without it
 * the epoch goes on by one only.
 */
export function findOutranking(
  serverId: number,
  historyEpoch: number,
  { epoch, ledMs, syncLimitMs }: Reign,
): string | null {
  if (ledMs === null || historyEpoch <= epoch || ledMs < syncLimitMs) return null;
  return (
    `server ${serverId} has a history of epoch ${historyEpoch}, later than epoch ${epoch} of this leader: have ` +
    'servers of its quorum lost their data?'
  );
}
