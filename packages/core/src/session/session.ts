/** Which server a session's client is connected to, as the server that proposes knows it: a learner's id, or one of these. */
export const SessionOwner = {
  /** Nobody has spoken for it since this server began to propose. */
  none: -1,
  /** The server that proposes itself. */
  local: -2,
} as const;

/**
 * A session as the server that its client is connected to sees it, and the one that decides about its life.
 *
 * It outlives connections: a client that comes back with id and password is the same session. It ends when the client
 * closes it or when nothing was heard of it for its timeout; then its ephemerals go, by one closeSession txn.
 */
export class Session {
  readonly id: bigint;
  /** Negotiated at the last connect; milliseconds. */
  timeoutMs: number;
  /**
   * The end of the bucket in which it expires; monotonic milliseconds, a multiple of the tick. Kept by the tracker. On a
   * learner, when it is refused for having been silent.
   */
  expiresAtMs = 0;
  /** Where sessions expire: when its timeout is over, to the millisecond. Kept by the tracker. */
  dueMs = 0;
  /** Set when a closeSession has been proposed: nothing more is accepted from it. */
  isClosing = false;
  /** A learner's id or a `SessionOwner`: whose requests for the session are accepted. Kept where sessions expire. */
  owner: number = SessionOwner.none;
  /** Only the server that its client is connected to knows it. Kept by `LocalSessions`. */
  isLocal = false;
  /** On a learner: something was heard of it since the leader was told last. Kept by `LearnerSessions`. */
  isHeard = false;

  constructor(id: bigint, timeoutMs: number) {
    this.id = id;
    this.timeoutMs = timeoutMs;
  }
}

/** `0x` and lower-case hexadecimal of the 64 bits, as in Apache's messages. */
export function formatSessionId(id: bigint): string {
  return `0x${BigInt.asUintN(64, id).toString(16)}`;
}
