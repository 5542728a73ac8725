import { type CommittedTree, committedTree, readLogs, type VirtualEnsemble } from '@meerkat/simulator';

/**
 * The committed history of an ensemble without faults. null when no server has the beginning: a learner that is sent a
 * snapshot drops its log, and in about one world in a hundred all of them were. Then nothing is checked with it.
 */
export function committedSince0(ensemble: VirtualEnsemble): CommittedTree | null {
  const logs = ensemble.servers.flatMap(({ disk, options }) => readLogs(disk, options.logDirectory));
  const isComplete = logs.some(({ zxid }) => zxid === FIRST_ZXID);
  return isComplete ? committedTree(ensemble) : null;
}

/** Of the first epoch with a leader. */
const FIRST_ZXID = 2 ** 32 + 1;

/** The start of virtual time on the wall clocks of the servers, unless they are set: milliseconds since 1970. */
export const EPOCH_MS = 1_700_000_000_000;
