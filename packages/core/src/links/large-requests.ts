/** Accounting of a connection: bytes of its large requests, and whether one of them is still arriving. */
interface Held {
  bytes: number;
  isComing: boolean;
}

/**
 * Bounds the memory of large requests (`largeRequestThreshold`, `largeRequestMaxBytes`). A request counts from when its
 * length is known until its connection has nothing more to be answered.
 */
export class LargeRequests<Connection extends { readonly waiting: { readonly length: number } }> {
  readonly #bytesMax: number;
  readonly #held: Map<Connection, Held> = new Map();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Called repeatedly while a request arrives.
   *
   * @returns false when there is no room for it
   */
  admit(connection: Connection, bytes: number): boolean {
    const held = this.#held.get(connection);
    if (held?.isComing === true) return true;
    if (this.#bytes + bytes > this.#bytesMax) return false;
    this.#bytes += bytes;
    if (held === undefined) this.#held.set(connection, { bytes, isComing: true });
    else {
      held.bytes += bytes;
      held.isComing = true;
    }
    return true;
  }

  /** A large request has arrived completely. */
  onComplete(connection: Connection): void {
    const held = this.#held.get(connection);
    if (held !== undefined) held.isComing = false;
  }

  /** Releases the memory of connections that are owed no more replies. */
  releaseAnswered(): void {
    for (const [connection, { isComing }] of this.#held) {
      if (!isComing && connection.waiting.length === 0) this.release(connection);
    }
  }

  release(connection: Connection): void {
    this.#bytes -= this.#held.get(connection)?.bytes ?? 0;
    this.#held.delete(connection);
  }
}
