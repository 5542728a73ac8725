import { type About, ConnectionLossError, RequestTooLargeError } from '@meerkat/client';
import { isPassing } from './failures.ts';

/**
 * What one write has cost, in connections lost in a row. A server closes the connection without a word when a request is larger
 * than its limit (jute.maxbuffer), which may be below what the client takes for it. To send such a request again would never
 * end, and cost all of the client a connection each time. So the client that repeats what may be large asks something small in between,
 * and gives up, or pauses, when only that is answered.
 *
 * @example
 * const losses = new LossStreak();
 * // for each attempt: await the small one; losses.check(about); await the large one, and losses.noted(error, size) of its failure
 */
export class LossStreak {
  #length = 0;

  /** It has cost so many that it is to be tried more rarely, if at all. */
  get isTooLong(): boolean {
    return this.#length >= LOSSES_MAX;
  }

  /**
   * Remembers what ended an attempt.
   *
   * @param size of what was sent, about, in bytes: what is small is not refused for that, however often connections break
   * @returns the error, to be thrown on
   */
  noted(error: unknown, size: number): unknown {
    if (error instanceof ConnectionLossError && error.outcome === 'unknown' && size > SMALL_BYTES) this.#length++;
    else if (!isPassing(error)) this.#length = 0;
    return error;
  }

  /** An attempt was answered. */
  end(): void {
    this.#length = 0;
  }

  /** @returns what an attempt has failed for: RequestTooLargeError of outcome 'unknown' after too many losses in a row */
  explain(error: unknown, about: About): unknown {
    if (!this.isTooLong) return error;
    return new RequestTooLargeError({ ...about, outcome: 'unknown', detail: CLOSED, cause: error });
  }

  /**
   * To be called when something small has been answered since the last attempt.
   *
   * @throws RequestTooLargeError of outcome 'unknown' after too many losses in a row
   */
  check(about: About): void {
    if (this.isTooLong) throw new RequestTooLargeError({ ...about, outcome: 'unknown', detail: CLOSED });
  }
}

/** Below any limit with which a service is of use. */
const SMALL_BYTES = 4096;
const LOSSES_MAX = 5;
const CLOSED = `the connection was lost ${LOSSES_MAX} times in a row while this was in flight, and smaller requests were answered`;
