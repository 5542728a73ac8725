/** Times and limits of leader and learner. */
export interface ZabOptions {
  readonly serverId: number;
  readonly tickTimeMs: number;
  /** Ticks for connecting and synchronizing. */
  readonly initLimit: number;
  /** Ticks of silence that leader and learner allow each other. */
  readonly syncLimit: number;
  /** Milliseconds for which an answer to a ping lets a server answer its clients; 0: no limit. */
  readonly leaseMs: number;
  /** Number of txns in an epoch after which its leader hands over. */
  readonly epochTxnsMax: number;
  /** Number of committed txns kept in memory for learners. */
  readonly commitLogCount: number;
  /** Largest txn, with header and digest, that every learner accepts. */
  readonly txnBytesMax: number;
}
