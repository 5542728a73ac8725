import type { LearnerView } from '../base/server-view.ts';

/** What a server of an ensemble does between two elections. */
export interface Role {
  /** Server id of the leader. */
  readonly leader: number;
  readonly isEstablished: boolean;
  /** True while nothing new is begun: the role is about to end. */
  readonly isLeaving: boolean;
  /** Learners that hang on this server: of a leader all, of a follower observers. */
  learners(): readonly LearnerView[];
  /** Takes the storage: what becomes durable is reported to it from now on. */
  start(): void;
  onTick(): void;
  /** The turn ends; what is sent now leaves with it. */
  onTurnEnd(): void;
  /** Monotonic milliseconds; Infinity when nothing is due. */
  nextDeadlineMs(): number;
  /** Ends the role in good order: a leader hands over first. `onEnded` follows. */
  leave(reason: string): void;
  /** Closes everything at once; nothing is told any more. */
  abandon(reason: string): void;
}
