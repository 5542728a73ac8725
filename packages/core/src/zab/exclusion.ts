/**
 * Why a learner stays out for longer than until its next try, for the person who has to do something about it.
 *
 * @see docs/zab.md, "A server that stays out"
 */
import { MAX_EPOCH } from '@meerkat/protocol';
import { EPOCHS_NEAR } from '../election/believable.ts';

/**
 * A history is never replaced by that of a leader whose history is of an older epoch: where a quorum has such a leader, the
 * disks of servers of that quorum have lost what this one has.
 */
export function findOlderHistory(leader: string, leaderHistoryEpoch: number, currentEpoch: number): string | null {
  if (leaderHistoryEpoch >= currentEpoch) return null;
  return (
    `this server stays out and keeps its files: ${leader} is of epoch ${leaderHistoryEpoch}, and the history of this server ` +
    `is of epoch ${currentEpoch}. Have other servers lost their data directories? ${SEE}`
  );
}

/** It is no news when a leader makes way soon. */
export function findLaterPromise(acceptedEpoch: number, leaderEpoch: number): string | null {
  const lead = acceptedEpoch - leaderEpoch;
  if (lead <= EPOCHS_NEAR && acceptedEpoch < MAX_EPOCH) return null;
  return (
    `this server stays out: it has accepted epoch ${acceptedEpoch}, and its leader is of epoch ${leaderEpoch}. A leader makes ` +
    `way for it after ${lead} times syncLimit, if at all. Should its file acceptedEpoch be damaged: while the others serve, ` +
    `stop this server, write ${leaderEpoch} into the file and start it again. ${SEE}`
  );
}

const SEE = 'See docs/zab.md, "A server that stays out"';
