import type { Txn, TxnHeader, Zxid } from '@meerkat/protocol';

/**
 * Assigns zxids to txns and replicates them to a quorum: a leader, or a server that is a quorum by itself. The outcome
 * of a proposal is reported as a `Committed` watermark.
 */
export interface Broadcast {
  readonly lastProposed: Zxid;
  /** The zxid that the next proposal must have. */
  nextZxid(): Zxid;
  /** @returns bytes of the txn, as it is logged */
  propose(header: TxnHeader, txn: Txn, treeDigest: bigint | null): number;
  /**
   * Confirms that this server still leads, and waits until everything proposed so far is committed.
   *
   * @returns a ticket; tickets ascend, and are answered in order
   */
  sync(): number;
  /** Every ticket up to this one is answered. */
  readonly lastSynced: number;
}
