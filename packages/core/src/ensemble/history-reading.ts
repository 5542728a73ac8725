import { EMPTY_BYTES, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import type { EnsembleOptions } from '../base/options.ts';
import type { History } from '../zab/history.ts';
import type { RoleHost } from './role-host.ts';

/** Bytes of log read for a learner at a time. */
const HISTORY_BATCH_BYTES = 1024 * 1024;
/** Up to this many bytes of log, reading them is never more expensive than sending a snapshot. */
const HISTORY_BYTES_FREE = 4 * 1024 * 1024;

/**
 * Reads the log for a learner, see `LearnerTraffic.readHistory`.
 *
 * @param done called in a later turn, with an empty list when the history cannot be read
 */
export function readHistory(
  { storage, turn }: RoleHost,
  { snapshotSizeFactor }: EnsembleOptions,
  { from, upTo }: { readonly from: Zxid; readonly upTo: Zxid },
  done: (entries: History['tail']) => void,
): void {
  const budget = Math.max(HISTORY_BYTES_FREE, storage.newestSnapshotBytes * snapshotSizeFactor);
  if (snapshotSizeFactor < 0 || storage.logBytesAfter(from) > budget) {
    turn.defer(() => done([]));
    return;
  }
  storage.readHistory({ after: from, upTo, bytesMax: HISTORY_BATCH_BYTES }, (entries) => {
    // A log that has what follows a txn also has that txn.
    const anchor: History['tail'] = from === ZXID_ZERO ? [] : [{ zxid: from, payload: EMPTY_BYTES }];
    done(entries === null ? [] : [...anchor, ...entries]);
  });
}
