import type { LearnerView } from '../base/server-view.ts';

/** What a server of an ensemble does between two elections: lead or learn. */
export interface Role {
  /** Server id of the leader. */
  readonly leader: number;
  readonly isEstablished: boolean;
  /** True while nothing new is started because the role is about to end. */
  readonly isLeaving: boolean;
  /** Learners of this server: all of them for a leader, observers for a follower. */
  learners(): readonly LearnerView[];
  /** Txns in memory for learners that are a little behind. */
  readonly rememberedTxns: number;
  /** Takes over the storage: from now on durability is reported to this role. */
  start(): void;
  onTick(): void;
  /** The turn ends; anything sent now leaves with it. */
  onTurnEnd(): void;
  /** Monotonic milliseconds; Infinity when nothing is due. */
  nextDeadlineMs(): number;
  /** Ends the role gracefully: a leader hands over first. `onEnded` follows. */
  leave(reason: string): void;
  /** Closes everything at once, without further events. */
  abandon(): void;
}
