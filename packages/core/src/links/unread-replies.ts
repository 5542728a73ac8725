import type { PeerAddress } from '../base/ports.ts';
import { UnidentifiedConnections } from './unidentified-connections.ts';

/**
 * Replies that clients have not taken yet, of all connections together: they stay in memory until then.
 *
 * A client that does not read gets no further requests read, but thousands of them could hold a long reply each. When
 * all together hold too much, a connection of the address with most of them is closed, the oldest first.
 */
export class UnreadReplies<T> {
  readonly #bytesMax: number;
  readonly #bytesOf: Map<T, number> = new Map();
  readonly #holders: UnidentifiedConnections<T> = new UnidentifiedConnections();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes of all connections. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @param bytes bytes that this connection has not taken */
  hold(connection: T, from: PeerAddress, bytes: number): void {
    const before = this.#bytesOf.get(connection);
    if (before === undefined) this.#holders.add(connection, from);
    this.#bytesOf.set(connection, bytes);
    this.#bytes += bytes - (before ?? 0);
  }

  /** It has taken everything, or is closed. */
  release(connection: T): void {
    const bytes = this.#bytesOf.get(connection);
    if (bytes === undefined) return;
    this.#bytesOf.delete(connection);
    this.#holders.delete(connection);
    this.#bytes -= bytes;
  }

  /**
   * @returns the connection to be closed, already released; null while the total is within the limit, or held by one
   * connection
   */
  shed(): T | null {
    if (this.#bytes <= this.#bytesMax || this.#holders.size < 2) return null;
    const chosen = this.#holders.choose();
    if (chosen !== null) this.release(chosen);
    return chosen;
  }
}
