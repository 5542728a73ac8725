import { EMPTY_BYTES, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import type { EnsembleOptions } from '../base/options.ts';
import type { History } from '../zab/history.ts';
import type { RoleHost } from './role-host.ts';

/** Bytes of log that are read for a learner at once. */
const HISTORY_BATCH_BYTES = 1024 * 1024;
/** Reading so much of the log is never dearer than sending a snapshot. */
const HISTORY_BYTES_FREE = 4 * 1024 * 1024;

/** Reads the log for a learner, see `LearnerTraffic.readHistory`. @param done told later, with nothing where there is no such history */
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
    // A log that gives what follows a txn has that txn itself.
    const anchor: History['tail'] = from === ZXID_ZERO ? [] : [{ zxid: from, payload: EMPTY_BYTES }];
    done(entries === null ? [] : [...anchor, ...entries]);
  });
}
