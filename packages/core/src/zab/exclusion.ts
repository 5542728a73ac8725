/**
 * Why a learner stays out beyond its next connection attempt, for the operator who has to act.
 *
 * @see docs/zab.md, "A server that stays out"
 */
import { epochOf, MAX_EPOCH } from '@meerkat/protocol';
import { EPOCHS_FAR, EPOCHS_NEAR } from '../election/plausible.ts';
import type { History } from './history.ts';
import type { LearnerOptions } from './learner-host.ts';

/**
 * A history is never replaced by one of an older epoch. If a quorum has elected a leader with an older history, servers
 * of that quorum have lost data that this server still has.
 */
export function findOlderHistory(leader: string, leaderHistoryEpoch: number, currentEpoch: number): string | null {
  if (leaderHistoryEpoch >= currentEpoch) return null;
  return (
    `this server stays out and keeps its files: ${leader} is of epoch ${leaderHistoryEpoch}, and the history of this server ` +
    `is of epoch ${currentEpoch}. Have other servers lost their data directories? ${SEE}`
  );
}

/** Null while the lead is small: the leader will make way soon. */
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

/** Why nothing may be sent to this leader, human-readable; null when this server may follow it. */
export function findOwnRefusal(
  { leaderHistoryEpoch, leaderChecksPromises }: LearnerOptions,
  { acceptedEpoch, currentEpoch, lastZxid }: OwnHistory,
): string | null {
  const older = findOlderHistory('its leader', leaderHistoryEpoch, currentEpoch);
  if (older !== null || leaderChecksPromises) return older;
  const isBorneOut = acceptedEpoch - Math.max(epochOf(lastZxid), leaderHistoryEpoch) <= EPOCHS_FAR;
  return isBorneOut ? null : findLaterPromise(acceptedEpoch, leaderHistoryEpoch);
}

/**
 * Why a server stays out after a failed handshake. A leader that does not believe the promise may close the connection
 * without sending its epoch.
 *
 * @param epoch the leader's; 0 if it has not sent it
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
