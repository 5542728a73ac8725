import type { Client } from '@meerkat/client';

/**
 * Until when a client may be sure of its session: `client.lostAtMs`, one session timeout after the sending of the last request
 * that was answered, less a margin. Each answer of the service moves it; docs/recipes/README.md tells what follows from that.
 */
export class Deadline {
  readonly #client: Client;
  /** Milliseconds. */
  readonly #marginMs: number;

  constructor(client: Client, marginMs = 0) {
    this.#client = client;
    this.#marginMs = marginMs;
  }

  /**
   * Milliseconds until then; 0 or less once it has passed. Reads the clock, so it is true also in a process that stood still
   * and in which no timer has rung yet.
   */
  get leftMs(): number {
    const { surroundings, lostAtMs } = this.#client;
    return lostAtMs - this.#marginMs - surroundings.clock.monotonicMs();
  }

  /**
   * Tells once when it has passed, at once if it has already. Without a margin it tells nothing: the client has a timer of its
   * own for that, and aborts the signal of the session.
   *
   * @returns what ends it
   */
  watch(onPassed: () => void): () => void {
    if (this.#marginMs <= 0) return () => {};
    const { clock } = this.#client.surroundings;
    let cancel = (): void => {};
    const look = (): void => {
      const { leftMs } = this;
      if (leftMs <= 0) onPassed();
      else cancel = clock.schedule(Math.max(1, Math.ceil(leftMs)), look);
    };
    look();
    return () => cancel();
  }
}
