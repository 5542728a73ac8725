import type { Zxid } from '@meerkat/protocol';
import type { Durable } from '../base/durable.ts';

/** A txn of the log as PROPOSAL carries it: header, record and digest. The bytes must not be modified. */
export interface HistoryEntry {
  readonly zxid: Zxid;
  readonly payload: Uint8Array;
}

/**
 * What a server's disk holds when a role begins, all of it durable.
 *
 * 1. `lastZxid` is that of the last txn in the log, or of the snapshot when the log ends before it.
 * 2. epochOf(lastZxid) ≤ currentEpoch ≤ acceptedEpoch.
 */
export interface History {
  readonly lastZxid: Durable<Zxid>;
  /** The highest epoch whose history was adopted (f.a in the paper). */
  readonly currentEpoch: Durable<number>;
  /** The highest epoch that was promised (f.p). */
  readonly acceptedEpoch: Durable<number>;
  /** The newest txns, oldest first, without a gap, up to `lastZxid`; possibly none. */
  readonly tail: readonly HistoryEntry[];
}

/** Where a history ends, as its server reports it. */
interface HistoryEnd {
  readonly currentEpoch: number;
  readonly lastZxid: Zxid;
}

/** True when a leader with the first of two histories has all that may have been committed in the second (ACKEPOCH). */
export function hasAllOf(leader: HistoryEnd, other: HistoryEnd): boolean {
  if (leader.currentEpoch !== other.currentEpoch) return leader.currentEpoch > other.currentEpoch;
  return leader.lastZxid >= other.lastZxid;
}
