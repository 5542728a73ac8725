import type { Txn, TxnHeader, Zxid } from '@meerkat/protocol';

/**
 * Who gives txns their zxids and brings them to a quorum: a leader, or a server that is a quorum by itself. What comes
 * of a proposal is told as a `Committed` watermark.
 */
export interface Broadcast {
  readonly lastProposed: Zxid;
  /** The zxid that the next proposal must have. */
  nextZxid(): Zxid;
  /** @returns bytes of the txn, as it is logged */
  propose(header: TxnHeader, txn: Txn, treeDigest: bigint | null): number;
  /**
   * Asks for the moment at which everything proposed so far is committed and at which this server was still the one
   * that proposes. @returns a ticket; tickets ascend, and are answered in order
   */
  sync(): number;
  /** Every ticket up to this one is answered. */
  readonly lastSynced: number;
}
