/**
 * Why a learner stays out for longer than until its next try, for the person who has to do something about it.
 *
 * @see docs/zab.md, "A server that stays out"
 */
import { epochOf, MAX_EPOCH } from '@meerkat/protocol';
import { EPOCHS_FAR, EPOCHS_NEAR } from '../election/believable.ts';
import type { History } from './history.ts';
import type { LearnerOptions } from './learner-host.ts';

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

type OwnHistory = Pick<History, 'lastZxid' | 'currentEpoch' | 'acceptedEpoch'>;

/** Why nothing is to be said to this leader, for people; null when it may be followed. */
export function findOwnRefusal(
  { leaderHistoryEpoch, leaderJudgesPromises }: LearnerOptions,
  { acceptedEpoch, currentEpoch, lastZxid }: OwnHistory,
): string | null {
  const older = findOlderHistory('its leader', leaderHistoryEpoch, currentEpoch);
  if (older !== null || leaderJudgesPromises) return older;
  const isBorneOut = acceptedEpoch - Math.max(epochOf(lastZxid), leaderHistoryEpoch) <= EPOCHS_FAR;
  return isBorneOut ? null : findLaterPromise(acceptedEpoch, leaderHistoryEpoch);
}

/**
 * Why a server stays out whose handshake has come to nothing. A leader that does not believe a promise need not say of
 * which epoch it is.
 *
 * @param epoch the leader's, as far as it has said
 */
export function findExclusion(
  reason: string,
  epoch: number,
  { kind, leaderHistoryEpoch }: LearnerOptions,
  { acceptedEpoch }: OwnHistory,
): string | null {
  if (epoch > acceptedEpoch) return `this server stays out: ${reason}`;
  return kind === 'observer' ? null : findLaterPromise(acceptedEpoch, Math.max(epoch, leaderHistoryEpoch));
}
