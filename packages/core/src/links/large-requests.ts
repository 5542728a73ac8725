/** What is held of a connection: bytes of its large requests, and whether one of them is still coming. */
interface Held {
  bytes: number;
  isComing: boolean;
}

/**
 * How much of the memory large requests may take (`largeRequestThreshold`, `largeRequestMaxBytes`): from the moment when their
 * length is known until their connection has nothing more to be answered.
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

  /** Asked again and again while a request comes. @returns false when there is no room for it */
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

  /** All of it is there. */
  onComplete(connection: Connection): void {
    const held = this.#held.get(connection);
    if (held !== undefined) held.isComing = false;
  }

  /** Gives back what those have held that owe no answer any more. */
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
