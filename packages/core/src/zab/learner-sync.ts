/**
 * How a learner catches up with its leader (LearnerHandler.syncFollower). See docs/zab.md, "Synchronization".
 *
 * P is the last zxid in the learner's log. The leader looks up the last point of its own history not later than P:
 *
 *     the leader's history   … (4,7)  (4,8)  (5,1)  (5,2)
 *     P = (4,8)                       DIFF: the leader has it too, and sends (5,1), (5,2)
 *     P = (4,9)                       TRUNC(4,8): (4,9) was never committed; then (5,1), (5,2)
 *     P = (3,9)                       SNAP: it is unknown which of its txns of epoch 3 the leader has
 *
 * Why this is correct:
 *
 * 1. A log holds a prefix of each epoch's history, and every committed txn is in the leader's history. So two histories
 *    with txns of the same epoch are equal up to where the shorter one ends in that epoch, and a zxid in both means
 *    that they are equal up to it.
 * 2. TRUNC stays within the epoch of P: of earlier epochs the learner may have txns that the leader lacks, or lack txns
 *    that the leader has. And it truncates to a txn, not to the beginning of an epoch.
 * 3. (e, 0) is no txn but denotes the initial history of epoch e. The leader's history contains all of that, so the
 *    learner needs what follows (e, 0) there. The same holds for an empty log, 0.
 * 4. A gap may hide any txns (ZOOKEEPER-2846): SNAP.
 */
import { counterOf, epochOf, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import type { HistoryEntry } from './history.ts';
import { isNext, type RecentLog } from './recent-log.ts';

/** The first packet to the learner, and the point of the leader's history after which txns follow. */
export type SyncStart = { readonly mode: 'diff' | 'trunc'; readonly from: Zxid } | { readonly mode: 'snap' };

const SNAP = { mode: 'snap' } as const;

/**
 * @param last P, the last zxid in the learner's log; −1 when its data cannot be trusted
 * @param committed the end of the leader's history: what follows in `log` is outstanding
 * @returns null when memory does not reach back far enough: `chooseFromDisk` decides once the log has been read
 */
export function chooseSync(last: Zxid, log: RecentLog, committed: Zxid): SyncStart | null {
  if (last < 0) return SNAP;
  if (last === committed) return { mode: 'diff', from: last };
  if (last > committed) return startAt(last, committed);
  if (last < log.floor) return null;
  return counterOf(last) === 0 ? { mode: 'diff', from: last } : startAt(last, log.pointAt(last));
}

/** @param entries result of `readHistory` for P: begins with the last entry not later than P, or empty */
export function chooseFromDisk(last: Zxid, entries: readonly HistoryEntry[]): SyncStart {
  const first = entries[0];
  if (first === undefined || findGap(entries) >= 0) return SNAP;
  if (first.zxid > last) {
    // P itself is not in the log. That is no gap if no zxid lies between, or if the log begins with the first txn ever.
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

/** @param point the last point of the leader's history not later than P */
function startAt(last: Zxid, point: Zxid): SyncStart {
  if (point === last) return { mode: 'diff', from: last };
  const isWithinEpoch = epochOf(point) === epochOf(last) && counterOf(point) > 0;
  return isWithinEpoch ? { mode: 'trunc', from: point } : SNAP;
}
