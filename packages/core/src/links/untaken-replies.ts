import type { PeerAddress } from '../base/ports.ts';
import { Strangers } from './strangers.ts';

/**
 * Replies that clients have not taken yet, of all connections together: they stand in memory until then.
 *
 * No further request is read of a client that takes nothing, but thousands of them would hold a long reply each. When all
 * hold too much, one of the address with most of them is given up, the oldest first.
 */
export class UntakenReplies<T> {
  readonly #bytesMax: number;
  readonly #bytesOf: Map<T, number> = new Map();
  readonly #holders: Strangers<T> = new Strangers();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes of all of them. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @param bytes that this connection has not taken */
  hold(connection: T, from: PeerAddress, bytes: number): void {
    const before = this.#bytesOf.get(connection);
    if (before === undefined) this.#holders.add(connection, from);
    this.#bytesOf.set(connection, bytes);
    this.#bytes += bytes - (before ?? 0);
  }

  /** It has taken everything, or is gone. */
  release(connection: T): void {
    const bytes = this.#bytesOf.get(connection);
    if (bytes === undefined) return;
    this.#bytesOf.delete(connection);
    this.#holders.delete(connection);
    this.#bytes -= bytes;
  }

  /** @returns the connection to be given up, which is released; null while all together hold no more than they may, or one alone */
  shed(): T | null {
    if (this.#bytes <= this.#bytesMax || this.#holders.size < 2) return null;
    const chosen = this.#holders.choose();
    if (chosen !== null) this.release(chosen);
    return chosen;
  }
}
