/** The server that created the session. */
export function serverIdOf(sessionId: bigint): number {
  return Number(BigInt.asUintN(8, sessionId >> 56n));
}

/**
 * Generates session ids: the server's id in the top byte, 40 bits of its start time, then a counter
 * (SessionTrackerImpl.initializeNextSessionId).
 *
 * Apache uses the monotonic clock, which starts from zero after a reboot. The wall clock keeps the ids of one server
 * distinct across restarts, because a session id must never be reused.
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
