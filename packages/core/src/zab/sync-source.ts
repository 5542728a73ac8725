import type { Zxid } from '@meerkat/protocol';
import type { RecentLog } from './recent-log.ts';

/** The history that learners catch up from and then follow: that of a leader, or of a follower that feeds observers. */
export interface SyncSource {
  /** Committed txns followed by the outstanding ones. */
  readonly log: RecentLog;
  readonly epoch: number;
  /** True once a quorum has the initial history of the epoch. */
  readonly isEstablished: boolean;
  readonly committed: Zxid;
  /** Committed, and durable here. */
  readonly applied: Zxid;
  /** Zxid for a snapshot of the applied state: the last txn's, or (epoch, 0) before the first txn of the epoch. */
  readonly snapshotZxid: Zxid;
  /** (epoch, 0) when nothing has been proposed in this epoch. */
  readonly lastProposed: Zxid;
  /** The last txn, of this epoch or of earlier ones. */
  readonly lastTxn: Zxid;
}
