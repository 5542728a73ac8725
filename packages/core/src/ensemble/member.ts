import type { Database } from '../tree/database.ts';
import type { History } from '../zab/history.ts';

/** The recovered state of the disk: every txn in the log is applied, even if it is not yet known to be committed. */
export interface RecoveredState {
  readonly database: Database;
  readonly history: History;
}

/** The part of a server behind its client ports: standalone (`Solo`), or a member of an ensemble (`QuorumPeer`). */
export interface Member {
  /** The storage has recovered: a role may begin. */
  onRecovered(state: RecoveredState): void;
  onTick(): void;
  /** The turn ends; anything sent now leaves with it. */
  onTurnEnd(): void;
  /** Monotonic milliseconds; Infinity when nothing is due. */
  nextDeadlineMs(): number;
  /** As in `LeaseKnowledge`. */
  readonly sharedLeaseMs: number | null;
  /** True while nothing new is started because the role is about to end. */
  readonly isLeaving: boolean;
  /** The server stops. */
  stop(): void;
  /**
   * True once nothing is in flight and the storage may be closed; polled at the end of each turn while the server
   * stops.
   */
  isReadyToStop(): boolean;
  /** The server has failed: closes everything at once, without further events. */
  abandon(): void;
}
