import type { Zxid } from '@meerkat/protocol';
import type { RecentLog } from './recent-log.ts';

/** The history that learners are brought up to date with, and then kept so: a leader's, or that of a follower which feeds observers. */
export interface SyncSource {
  /** Committed txns and, behind them, the outstanding ones. */
  readonly log: RecentLog;
  readonly epoch: number;
  /** True once a quorum has the history that the epoch began with. */
  readonly isEstablished: boolean;
  readonly committed: Zxid;
  /** Committed, and durable here. */
  readonly applied: Zxid;
  /** What a snapshot of what is applied may be called: by the last txn, or by (epoch, 0) before the first one of the epoch. */
  readonly snapshotZxid: Zxid;
  /** (epoch, 0) when nothing has been proposed in this epoch. */
  readonly lastProposed: Zxid;
  /** The last txn there is, of this epoch or of earlier ones. */
  readonly lastTxn: Zxid;
}
