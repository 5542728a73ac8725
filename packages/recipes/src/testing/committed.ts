import { type CommittedTree, committedTree, readLogs, type VirtualEnsemble } from '@meerkat/simulator';

/**
 * Everything that was committed, of an ensemble that is whole. null when no server has the beginning any more: a learner that
 * is sent a snapshot drops its log, and in one world of some hundred all of them were. What is checked by it is not, then.
 */
export function committedSince0(ensemble: VirtualEnsemble): CommittedTree | null {
  const logs = ensemble.servers.flatMap(({ disk, options }) => readLogs(disk, options.logDirectory));
  const isComplete = logs.some(({ zxid }) => zxid === FIRST_ZXID);
  return isComplete ? committedTree(ensemble) : null;
}

/** Of the first epoch with a leader. */
const FIRST_ZXID = 2 ** 32 + 1;

/** When virtual time began by the wall clocks of the servers, as long as they are not set: milliseconds since 1970. */
export const EPOCH_MS = 1_700_000_000_000;
