import { onAbort } from './abort.ts';
import { checkTimeout } from './bounds.ts';
import type { Clock } from './clock.ts';
import type { Outcome } from './error-table.ts';
import { AbortedError, TimeoutError } from './errors.ts';
import type { Random } from './machine/ports.ts';
import type { About, CallOptions } from './requester.ts';

/** The environment of retries and conveniences besides the session; virtual in the simulator. */
export interface Surroundings {
  readonly clock: Pick<Clock, 'monotonicMs' | 'schedule'>;
  readonly random: Random;
}

/**
 * The deadline of a whole convenience, shared by its requests.
 *
 * Without it every request would get the full `timeoutMs`.
 */
export class Budget {
  readonly #options: CallOptions;
  readonly #surroundings: Surroundings;
  readonly #about: About;
  readonly #endMs: number | null;

  /** @throws RangeError for a `timeoutMs` that is not a number */
  constructor(options: CallOptions, surroundings: Surroundings, about: About) {
    const { timeoutMs } = options;
    checkTimeout(timeoutMs);
    this.#options = options;
    this.#surroundings = surroundings;
    this.#about = about;
    this.#endMs = timeoutMs === undefined ? null : surroundings.clock.monotonicMs() + timeoutMs;
  }

  /**
   * Signal and remaining time for the next request.
   *
   * @param outcome of the convenience so far, should it end here
   * @throws AbortedError or TimeoutError when there is no time left
   */
  next(outcome: Outcome = 'not-applied'): CallOptions {
    const { signal } = this.#options;
    if (signal?.aborted === true) throw new AbortedError({ ...this.#about, outcome, cause: signal.reason });
    if (this.#endMs === null) return signal === undefined ? NO_OPTIONS : { signal };
    const timeoutMs = this.#endMs - this.#surroundings.clock.monotonicMs();
    if (timeoutMs <= 0) throw new TimeoutError({ ...this.#about, outcome });
    return { signal, timeoutMs };
  }

  /** Waits; rejects like `next` as soon as the caller cancels. */
  pause(delayMs: number, outcome: Outcome = 'not-applied'): Promise<void> {
    const { signal } = this.#options;
    return new Promise((resolve, reject) => {
      const leftMs = this.#endMs === null ? delayMs : this.#endMs - this.#surroundings.clock.monotonicMs();
      const end = (): void => {
        cancel();
        release();
        try {
          this.next(outcome);
          resolve();
        } catch (error) {
          reject(error);
        }
      };
      let release = (): void => {};
      const cancel = this.#surroundings.clock.schedule(Math.max(0, Math.min(delayMs, leftMs)), end);
      release = onAbort(signal, end);
    });
  }
}

const NO_OPTIONS: CallOptions = Object.freeze({});
