import type { Client } from '@meerkat/client';
import type { Margin } from './settings.ts';

/**
 * Until when a client may be certain of its session: `client.lostAtMs`, one session timeout after the sending of the
 * last request that was answered, minus a margin. Each reply of the service extends it; docs/recipes/README.md explains
 * the consequences. Replies of a server without a quorum (`canBeReadOnly`) do not count: the ensemble does not learn
 * from them that the session lives.
 */
export class Deadline {
  readonly #client: Client;
  readonly #marginMs: Margin;

  constructor(client: Client, marginMs: Margin) {
    this.#client = client;
    this.#marginMs = marginMs;
  }

  /**
   * Milliseconds until then; 0 or less once it has passed. Reads the clock, so it is correct also in a process that was
   * paused and in which no timer has fired yet.
   */
  get leftMs(): number {
    const { surroundings, lostAtMs, state } = this.#client;
    if (state === 'read-only') return Number.NEGATIVE_INFINITY;
    return lostAtMs - this.#marginMs - surroundings.clock.monotonicMs();
  }

  /** Why it is not certain now; null while it is. */
  get passed(): string | null {
    if (this.#client.state === 'read-only') return NO_QUORUM;
    return this.leftMs <= 0 ? this.#silence : null;
  }

  /**
   * Calls back once when it has passed, at once if it has already. Without a margin only for a server without a quorum:
   * in all other cases the client's own timer aborts the signal of the session.
   *
   * @returns a function that stops watching
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
