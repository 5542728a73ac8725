/** Plausibility limits: how far an epoch or round reported by a single server is trusted. */
import { epochOf, MAX_EPOCH } from '@meerkat/protocol';
import type { Vote } from './vote.ts';

/** Epochs by which one promise may exceed all others without further checks. */
export const EPOCHS_NEAR = 16;

/**
 * Epochs by which one number may exceed all other evidence: a day of failed elections, nearly one a second, of which no
 * other server is left as a witness. Thirty-two such jumps use up all epochs.
 */
export const EPOCHS_FAR: number = 2 ** 16;

/** Rounds by which one notification may advance a server. Closing a larger gap takes several notifications. */
export const ROUNDS_FAR: number = 2 ** 20;

/**
 * True for a vote that a correct server can hold. A server adopts an epoch before its log has txns of it, and many
 * epochs may pass without a txn, but not so many that neither its log nor this server's own history is anywhere near.
 *
 * @param ownEpoch epoch of this server's history
 */
export function isPossible({ zxid, peerEpoch }: Vote, ownEpoch: number): boolean {
  const epoch = epochOf(zxid);
  return epoch <= peerEpoch && peerEpoch <= MAX_EPOCH && peerEpoch - Math.max(epoch, ownEpoch) <= EPOCHS_FAR;
}
