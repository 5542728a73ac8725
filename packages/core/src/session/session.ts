/** The server that a session's client is connected to, as the leader knows it: a learner's id or one of these. */
export const SessionOwner = {
  /** Unknown: no server has sent a request of the session since this server began to lead. */
  none: -1,
  /** The leader or standalone server itself. */
  local: -2,
} as const;

/**
 * A session, as known by the server that its client is connected to and by the one that decides when it expires.
 *
 * It outlives connections: a client that reconnects with its id and password resumes it. It ends when the client closes
 * it or when it times out; its ephemerals are deleted by the same closeSession txn.
 */
export class Session {
  readonly id: bigint;
  /** Milliseconds, as negotiated at the last connect. */
  timeoutMs: number;
  /**
   * The end of the bucket in which it expires; monotonic milliseconds, a multiple of the tick. Maintained by the
   * tracker. On a learner: when its requests start being refused because it was silent.
   */
  expiresAtMs = 0;
  /** Where sessions expire: the exact end of its timeout, monotonic milliseconds. Maintained by the tracker. */
  dueMs = 0;
  /** Set once a closeSession is requested: nothing more is accepted from it. */
  isClosing = false;
  /** The txn of its end has been prepared: what comes after that is not for this session. Known to the leader only. */
  isEnded = false;
  /** On a leader: the server whose requests for the session are accepted, a learner's id or a `SessionOwner`. */
  owner: number = SessionOwner.none;
  /** Only known to the server that its client is connected to. Maintained by `LocalSessions`. */
  isLocal = false;
  /** On a learner: touched since the last report to the leader. Maintained by `LearnerSessions`. */
  isTouched = false;

  constructor(id: bigint, timeoutMs: number) {
    this.id = id;
    this.timeoutMs = timeoutMs;
  }
}

/** `0x` and lower-case hexadecimal of the 64 bits, as in Apache's messages. */
export function formatSessionId(id: bigint): string {
  return `0x${BigInt.asUintN(64, id).toString(16)}`;
}
