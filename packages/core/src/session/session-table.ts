import type { ConnectDecision } from './connect-decision.ts';
import type { Session } from './session.ts';

/** Sessions of which nothing may be heard until then. */
export interface ExpiryBucket {
  /** Monotonic milliseconds. */
  readonly expiresAtMs: number;
  readonly sessions: readonly Session[];
}

/** The sessions as a server sees them: one that decides when they end, or a learner, whose leader does. */
export interface SessionTable {
  /** Sessions that are known, wherever their clients are connected. */
  readonly count: number;
  get(id: bigint): Session | undefined;
  values(): IterableIterator<Session>;
  /** True for an id that may not be given to a new session. */
  isTaken(id: bigint): boolean;
  /** Something was heard of the session. @returns false when it has been silent for so long that it may have expired */
  touch(session: Session, nowMs: number): boolean;
  /** Its end has been asked for: nothing more is accepted from it. */
  setClosing(session: Session): void;
  remove(session: Session): void;
  /** A client that has shown the session's password wants to go on with it. */
  resume(id: bigint, timeoutMs: number, nowMs: number): ConnectDecision;
  /** The buckets that are not empty, earliest first; none where sessions do not expire. */
  buckets(): readonly ExpiryBucket[];
}
