/**
 * A session as the server that decides about its life sees it.
 *
 * It outlives connections: a client that comes back with id and password is the same session. It ends when the client
 * closes it or when nothing was heard of it for its timeout; then its ephemerals go, by one closeSession txn.
 */
export class Session {
  readonly id: bigint;
  /** Negotiated at the last connect; milliseconds. */
  timeoutMs: number;
  /** The end of the bucket in which it expires; monotonic milliseconds, a multiple of the tick. Kept by the tracker. */
  expiresAtMs = 0;
  /** Set when a closeSession has been proposed: nothing more is accepted from it. */
  isClosing = false;

  constructor(id: bigint, timeoutMs: number) {
    this.id = id;
    this.timeoutMs = timeoutMs;
  }
}

/** `0x` and lower-case hexadecimal of the 64 bits, as in Apache's messages. */
export function formatSessionId(id: bigint): string {
  return `0x${BigInt.asUintN(64, id).toString(16)}`;
}
