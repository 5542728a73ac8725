/**
 * What an established leader does about a voter that has promised a later epoch, or has a later history.
 *
 * A voter that has promised a later epoch, to a leader that was never established, cannot follow a leader of this
 * epoch: it would be refused as long as this leader leads. A new epoch lets it in, but only after `syncLimit` ticks for
 * each epoch by which it is ahead, so that such voters can neither keep the ensemble from working nor use up its
 * epochs.
 *
 * The next leader may find its quorum without that voter. So this server first accepts the same epoch: the next epoch
 * is then later than any that either of them has accepted, instead of one of many that still leave the voter out.
 *
 * This does not apply to a voter whose history is of a later epoch: making way for its promise would replace its
 * history.
 */
import type { PeerVotes } from './leader-host.ts';
import type { LearnerPeer } from './learner-peer.ts';
import { isLeadBelieved } from './promises.ts';

/** State of the leader that such a voter connects to. */
export interface LeaderState {
  readonly epoch: number;
  /** Milliseconds since the epoch was established; null before. */
  readonly ledMs: number | null;
  readonly syncLimitMs: number;
}

export class LaterPromises {
  readonly #peerVotes: PeerVotes;
  /** A voter needs a new epoch, having accepted one later than ours: this server accepts that one first. */
  #pendingEpochBump: { readonly accepted: number; readonly reason: string } | null = null;

  constructor(peerVotes: PeerVotes) {
    this.#peerVotes = peerVotes;
  }

  /** Why this leader is to hand over once it has accepted the same epoch; null while there is no reason. */
  get pendingEpochBump(): { readonly accepted: number; readonly reason: string } | null {
    return this.#pendingEpochBump;
  }

  /** @returns true when this leader makes way: it is to accept that epoch now */
  maybeBump(peer: LearnerPeer, accepted: number, { epoch, ledMs, syncLimitMs }: LeaderState): boolean {
    const historyEpoch = peer.refusesOlderEpochs ? epoch : this.#peerVotes.historyEpochOf(peer.serverId);
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
 * While a quorum follows the leader no history can be later than its own, unless servers of that quorum have lost their
 * data: then the longer history should win. The leader steps down, but does not accept the other server's epoch first:
 * the next epoch is then only one higher if that server is absent.
 */
export function findOutranking(
  serverId: number,
  historyEpoch: number,
  { epoch, ledMs, syncLimitMs }: LeaderState,
): string | null {
  if (ledMs === null || historyEpoch <= epoch || ledMs < syncLimitMs) return null;
  return (
    `server ${serverId} has a history of epoch ${historyEpoch}, later than epoch ${epoch} of this leader: have ` +
    'servers of its quorum lost their data?'
  );
}
