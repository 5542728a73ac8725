import type { Client } from '@meerkat/client';
import type { Margin } from './settings.ts';

/**
 * Until when a client may be sure of its session: `client.lostAtMs`, one session timeout after the sending of the last request
 * that was answered, less a margin. Each answer of the service moves it; docs/recipes/README.md says what follows from that.
 * The answers of a server without a quorum (`canBeReadOnly`) are none: no other client learns from it that the session lives.
 */
export class Deadline {
  readonly #client: Client;
  readonly #marginMs: Margin;

  constructor(client: Client, marginMs: Margin) {
    this.#client = client;
    this.#marginMs = marginMs;
  }

  /**
   * Milliseconds until then; 0 or less once it has passed. Reads the clock, so it is true also in a process that stood still
   * and in which no timer has rung yet.
   */
  get leftMs(): number {
    const { surroundings, lostAtMs, state } = this.#client;
    if (state === 'read-only') return Number.NEGATIVE_INFINITY;
    return lostAtMs - this.#marginMs - surroundings.clock.monotonicMs();
  }

  /** Why it is not certain now; null as long as one may. */
  get passed(): string | null {
    if (this.#client.state === 'read-only') return NO_QUORUM;
    return this.leftMs <= 0 ? this.#silence : null;
  }

  /**
   * Reports once when it has passed, at once if it has already. Without a margin it reports only of a server without a quorum:
   * for everything else the client has a timer of its own, and aborts the signal of the session.
   *
   * @returns what ends it
   */
  watch(onPassed: (why: string) => void): () => void {
    const { clock } = this.#client.surroundings;
    let cancel = (): void => {};
    const stop = (): void => {
      cancel();
      states[Symbol.dispose]();
    };
    const pass = (why: string): void => {
      stop();
      onPassed(why);
    };
    const look = (): void => {
      const { leftMs } = this;
      if (leftMs <= 0) pass(this.#silence);
      else cancel = clock.schedule(Math.max(1, Math.ceil(leftMs)), look);
    };
    const states = this.#client.onState(({ state }) => {
      if (state === 'read-only') pass(NO_QUORUM);
    });
    if (this.#client.state === 'read-only') pass(NO_QUORUM);
    else if (this.#marginMs > 0) look();
    return stop;
  }

  get #silence(): string {
    const timeoutMs = this.#client.session?.timeoutMs ?? Number.POSITIVE_INFINITY;
    if (this.#marginMs < timeoutMs) return TOO_LONG;
    return `marginMs, ${this.#marginMs}, leaves nothing of the session timeout, ${timeoutMs} ms`;
  }
}

const TOO_LONG = 'no answer of the service came for too long';
const NO_QUORUM = 'the server that answers has no quorum, and cannot report to the others that the session lives';
