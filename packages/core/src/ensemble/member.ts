import type { Database } from '../tree/database.ts';
import type { History } from '../zab/history.ts';

/** What the disk holds: every txn of the log is applied, also those of which nobody knows yet whether they are committed. */
export interface RecoveredState {
  readonly database: Database;
  readonly history: History;
}

/** What a server is beside a door for clients: alone (`Solo`), or one of an ensemble (`QuorumPeer`). */
export interface Member {
  /** The storage has recovered what the disk holds: a role may begin. */
  onRecovered(state: RecoveredState): void;
  onTick(): void;
  /** The turn ends; what is sent now leaves with it. */
  onTurnEnd(): void;
  /** Monotonic milliseconds; Infinity when nothing is due. */
  nextDeadlineMs(): number;
  /** As in `LeaseKnowledge`. */
  readonly sharedLeaseMs: number | null;
  /** True while nothing new is begun, as the role is about to end. */
  readonly isLeaving: boolean;
  /** The server stops. */
  stop(): void;
  /** True once the storage may be closed, as nothing is in flight; asked at each end of a turn while the server stops. */
  isReadyToStop(): boolean;
  /** The server cannot go on: everything is closed, nothing is told. */
  abandon(reason: string): void;
}
