import type { Client } from './client.ts';

/**
 * Tells whether other clients have written in the last five seconds, by the time their txns were applied. As long as
 * that because on a slow disk writes are rare, and wait even longer. All clients of other servers count as one client,
 * together with createSession and closeSession txns, which wait for a long multi like writes.
 */
export class RecentWriters {
  #last: Client | null = null;
  #lastMs = Number.NEGATIVE_INFINITY;
  /** When a client other than `#last` wrote last. */
  #otherMs = Number.NEGATIVE_INFINITY;

  /** @param client null: a client of another server, or one without a session yet */
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
