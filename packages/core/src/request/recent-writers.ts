import type { Client } from './client.ts';

/**
 * Whether others than a client have written lately: their txns were applied within the last five seconds. Where the disk is slow
 * writes are rare, and wait all the more. Clients of other servers count as one; so do sessions that begin and end, which wait
 * for a long multi as writes do.
 */
export class RecentWriters {
  #last: Client | null = null;
  #lastMs = Number.NEGATIVE_INFINITY;
  /** When a client other than the last one wrote last. */
  #otherMs = Number.NEGATIVE_INFINITY;

  /** @param client null: another server's, or one without a session yet */
  onWritten(client: Client | null, nowMs: number): void {
    if (client !== this.#last) {
      this.#otherMs = this.#lastMs;
      this.#last = client;
    }
    this.#lastMs = nowMs;
  }

  haveOthersWritten(client: Client, nowMs: number): boolean {
    return nowMs - (client === this.#last ? this.#otherMs : this.#lastMs) < LATELY_MS;
  }

  onLeft(client: Client): void {
    if (this.#last === client) this.#last = null;
  }
}

const LATELY_MS = 5000;
