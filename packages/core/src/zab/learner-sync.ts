/**
 * How a learner catches up with its leader (LearnerHandler.syncFollower). See docs/zab.md, "Synchronization".
 *
 * P is the last zxid in the learner's log. The leader looks for the last point of its own history that is not later:
 *
 *     the leader's history   … (4,7)  (4,8)  (5,1)  (5,2)
 *     P = (4,8)                       DIFF: the learner is there, and is sent (5,1), (5,2)
 *     P = (4,9)                       TRUNC(4,8): (4,9) was never committed; then (5,1), (5,2)
 *     P = (3,9)                       SNAP: who knows which of the txns of epoch 3 are the leader's
 *
 * What it rests on:
 *
 * 1. A log is a prefix of each epoch's history, and what is committed is in the leader's history. So two histories that
 *    have txns of one epoch are the same up to the shorter one's end of it, and a zxid that both know says that they are
 *    the same up to there.
 * 2. TRUNC goes back within the epoch of P only: of the epochs before it the learner may have what the leader lacks, or
 *    lack what the leader has. And it goes back to a txn, not to where an epoch begins.
 * 3. (e, 0) names the history with which epoch e began, and no txn. The leader's history begins with all of that, so
 *    what it has behind (e, 0) is what the learner needs; an empty log, 0, is such a place too.
 * 4. A gap means that nothing is known of what it hides (ZOOKEEPER-2846): SNAP.
 */
import { counterOf, epochOf, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import type { HistoryEntry } from './history.ts';
import { isNext, type RecentLog } from './recent-log.ts';

/** What the learner is told first, and behind which point of the leader's history it is sent the rest. */
export type SyncStart = { readonly mode: 'diff' | 'trunc'; readonly from: Zxid } | { readonly mode: 'snap' };

const SNAP = { mode: 'snap' } as const;

/**
 * @param last P, the last zxid in the learner's log; −1 when its data cannot be trusted
 * @param committed the end of the leader's history: what follows in `log` is outstanding
 * @returns null when the memory does not reach back so far: `chooseFromDisk` decides when the log has been read
 */
export function chooseSync(last: Zxid, log: RecentLog, committed: Zxid): SyncStart | null {
  if (last < 0) return SNAP;
  if (last === committed) return { mode: 'diff', from: last };
  if (last > committed) return startAt(last, committed);
  if (last < log.floor) return null;
  return counterOf(last) === 0 ? { mode: 'diff', from: last } : startAt(last, log.pointAt(last));
}

/** @param entries what `readHistory` gives for P: from the last entry that is not later than P, or nothing */
export function chooseFromDisk(last: Zxid, entries: readonly HistoryEntry[]): SyncStart {
  const first = entries[0];
  if (first === undefined || findGap(entries) >= 0) return SNAP;
  if (first.zxid > last) {
    // P itself is not in the log. That is no gap where nothing lies between, or where nothing was before.
    const isBeginning = last === ZXID_ZERO && counterOf(first.zxid) === 1;
    return isBeginning || first.zxid === last + 1 ? { mode: 'diff', from: last } : SNAP;
  }
  if (counterOf(last) === 0) return { mode: 'diff', from: last };
  let point = first.zxid;
  for (const { zxid } of entries) if (zxid <= last) point = zxid;
  return startAt(last, point);
}

/** Index of the first entry before which something is missing; −1 when there is no gap. */
export function findGap(entries: readonly HistoryEntry[]): number {
  return entries.findIndex(({ zxid }, i) => i > 0 && !isNext(entries[i - 1]!.zxid, zxid));
}

/** @param point the last one of the leader's history that is not later than P */
function startAt(last: Zxid, point: Zxid): SyncStart {
  if (point === last) return { mode: 'diff', from: last };
  const isWithinEpoch = epochOf(point) === epochOf(last) && counterOf(point) > 0;
  return isWithinEpoch ? { mode: 'trunc', from: point } : SNAP;
}
