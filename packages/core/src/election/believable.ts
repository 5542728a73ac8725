/** How far the numbers of one other server are believed before anything else bears them out. */
import { epochOf, MAX_EPOCH } from '@meerkat/protocol';
import type { Vote } from './vote.ts';

/** Epochs by which one promise may be ahead of all others without raising a question. */
export const EPOCHS_NEAR = 16;

/**
 * Epochs by which one number may be ahead of what anything else bears out: a day of failed elections, nearly one a
 * second, with nobody else left who was there. Thirty-two such jumps use up all epochs.
 */
export const EPOCHS_FAR: number = 2 ** 16;

/** Rounds of the election by which one notification moves a server. Where others are farther ahead, several do. */
export const ROUNDS_FAR: number = 2 ** 20;

/**
 * True of a vote that a server can have come to honestly. It adopts an epoch before its log has txns of it, and many
 * epochs may pass without a txn; not so many that its log, or this server's own history, bears out nothing of them.
 *
 * @param ownEpoch epoch of this server's history
 */
export function isPossible({ zxid, peerEpoch }: Vote, ownEpoch: number): boolean {
  const epoch = epochOf(zxid);
  return epoch <= peerEpoch && peerEpoch <= MAX_EPOCH && peerEpoch - Math.max(epoch, ownEpoch) <= EPOCHS_FAR;
}
