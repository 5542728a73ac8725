import type { Zxid } from '@meerkat/protocol';

/** A txn of the log as bytes: header, record and digest, what PROPOSAL carries. Nobody writes to them. */
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
  readonly lastZxid: Zxid;
  /** The highest epoch whose history was adopted (f.a in the paper). */
  readonly currentEpoch: number;
  /** The highest epoch that was promised (f.p). */
  readonly acceptedEpoch: number;
  /** The newest txns, oldest first, without a gap, up to `lastZxid`; possibly none. */
  readonly tail: readonly HistoryEntry[];
}
