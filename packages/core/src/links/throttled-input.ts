import type { LimitOptions } from '../base/limit-options.ts';
import type { Meters } from '../base/meters/meters.ts';

export type WaitLimits = Pick<LimitOptions, 'requestWaitMaxMs' | 'countsStale' | 'dropsStale'>;

/**
 * How long the requests of one connection have waited because of `request_throttle_max_requests`. Only requests that
 * were in this server's memory when the connection stopped being read are counted; those still in the kernel have no
 * known age.
 */
export class ThrottledInput {
  readonly #waits: WaitLimits;
  readonly #meters: Meters;
  #sinceMs = 0;
  /** Their bytes that have not been read since. */
  #bytes = 0;

  constructor(waits: WaitLimits, meters: Meters) {
    this.#waits = waits;
    this.#meters = meters;
  }

  /** The connection stops being read, with this many bytes of requests. */
  begin(bytes: number, nowMs: number): void {
    if (this.#bytes > 0) return;
    this.#meters.throttleWaits++;
    this.#bytes = bytes;
    this.#sinceMs = nowMs;
  }

  /**
   * A request of this many bytes is read.
   *
   * @returns milliseconds that it has waited if that is too long for it to be carried out, otherwise 0
   */
  take(bytes: number, nowMs: number, sessionTimeoutMs: number): number {
    if (this.#bytes === 0) return 0;
    this.#bytes = Math.max(0, this.#bytes - bytes);
    const waitedMs = nowMs - this.#sinceMs;
    this.#meters.throttleWait.add(waitedMs);
    const { requestWaitMaxMs, countsStale } = this.#waits;
    if (countsStale && waitedMs > sessionTimeoutMs) this.#meters.staleRequests++;
    return requestWaitMaxMs > 0 && waitedMs > requestWaitMaxMs ? waitedMs : 0;
  }

  /** @returns true when the connection must be closed because its requests have waited too long */
  isStale(nowMs: number, sessionTimeoutMs: number): boolean {
    const { countsStale, dropsStale } = this.#waits;
    return countsStale && dropsStale && this.#bytes > 0 && nowMs - this.#sinceMs > sessionTimeoutMs;
  }

  /** The connection is closed: waiting requests are not carried out. */
  drop(): void {
    if (this.#bytes > 0) this.#meters.staleRequestsDropped++;
    this.#bytes = 0;
  }
}
