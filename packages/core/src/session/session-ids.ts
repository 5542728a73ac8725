/** The server that a session was created at. */
export function serverIdOf(sessionId: bigint): number {
  return Number(BigInt.asUintN(8, sessionId >> 56n));
}

/**
 * Hands out session ids: the server's id in the top byte, 40 bits of the time of its start, then a counter
 * (SessionTrackerImpl.initializeNextSessionId).
 *
 * Apache takes the monotonic clock, which starts anew with the machine; the wall clock keeps ids of one server apart
 * over restarts, because a session id must never be used twice.
 */
export class SessionIds {
  #next: bigint;

  /** @param serverId 0 … 255 */
  constructor(serverId: number, wallMs: number) {
    const time = BigInt.asUintN(64, BigInt(Math.floor(wallMs)) << 24n) >> 8n;
    this.#next = BigInt.asIntN(64, time | (BigInt(serverId & 0xff) << 56n));
  }

  next(isTaken: (id: bigint) => boolean): bigint {
    let id = this.#next;
    while (id === 0n || isTaken(id)) id = BigInt.asIntN(64, id + 1n);
    this.#next = BigInt.asIntN(64, id + 1n);
    return id;
  }
}
