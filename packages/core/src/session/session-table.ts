import type { ConnectDecision } from './connect-decision.ts';
import type { Session } from './session.ts';

/** Sessions that expire at the same time unless they are touched. */
export interface ExpiryBucket {
  /** Monotonic milliseconds. */
  readonly expiresAtMs: number;
  readonly sessions: readonly Session[];
}

/** The sessions that a server knows. A leader or standalone server decides when they expire; a learner does not. */
export interface SessionTable {
  /** All known sessions, also those of clients that are connected to other servers. */
  readonly count: number;
  get(id: bigint): Session | undefined;
  values(): IterableIterator<Session>;
  /** True for an id that must not be given to a new session. */
  isTaken(id: bigint): boolean;
  /** The client has sent something. @returns false when it was silent for so long that the session may have expired */
  touch(session: Session, nowMs: number): boolean;
  /** A closeSession is in flight: nothing more is accepted from the session. */
  setClosing(session: Session): void;
  remove(session: Session): void;
  /** A client with the right password resumes the session. */
  resume(id: bigint, timeoutMs: number, nowMs: number): ConnectDecision;
  /** Non-empty buckets, earliest first; none where sessions do not expire. */
  buckets(): readonly ExpiryBucket[];
}
