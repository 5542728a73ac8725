import { type About, ConnectionLossError, RequestTooLargeError } from '@meerkat/client';
import { isPassing } from './failures.ts';

/**
 * The connections lost in a row to one write. A server closes the connection without a reply when a request is larger
 * than its limit (jute.maxbuffer), which may be lower than the client assumes. Retrying such a request would never end,
 * and cost all users of the client a connection each time. So a client that retries a possibly large request sends a
 * small one in between, and aborts, or backs off, when only that one is answered.
 *
 * @example
 * const losses = new LossStreak();
 * // for each attempt: await the small one; losses.check(about); await the large one, on error losses.noted(…)
 */
export class LossStreak {
  #length = 0;

  /** It has cost so many connections that it should be retried less often, if at all. */
  get isTooLong(): boolean {
    return this.#length >= LOSSES_MAX;
  }

  /**
   * Records what ended an attempt.
   *
   * @param size of the request, approximately, in bytes: a small one is never taken to be too large, however often
   *   connections break
   * @returns the error, to be rethrown
   */
  noted(error: unknown, size: number): unknown {
    if (error instanceof ConnectionLossError && error.outcome === 'unknown' && size > SMALL_BYTES) this.#length++;
    else if (!isPassing(error)) this.#length = 0;
    return error;
  }

  /** An attempt got a reply. */
  end(): void {
    this.#length = 0;
  }

  /** @returns the error to report: RequestTooLargeError of outcome 'unknown' after too many losses in a row */
  explain(error: unknown, about: About): unknown {
    if (!this.isTooLong) return error;
    return new RequestTooLargeError({ ...about, outcome: 'unknown', detail: CLOSED, cause: error });
  }

  /**
   * To be called when a small request has been answered since the last attempt.
   *
   * @throws RequestTooLargeError of outcome 'unknown' after too many losses in a row
   */
  check(about: About): void {
    if (this.isTooLong) throw new RequestTooLargeError({ ...about, outcome: 'unknown', detail: CLOSED });
  }
}

/** Below any limit with which a service is usable. */
const SMALL_BYTES = 4096;
const LOSSES_MAX = 5;
const CLOSED = `the connection was lost ${LOSSES_MAX} times in a row while this was in flight, and smaller requests were answered`;
