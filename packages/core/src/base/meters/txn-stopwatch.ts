import type { Histogram } from './histogram.ts';

/**
 * Measures how long txns take to reach some point. One txn is measured at a time; the next one starts after it has
 * arrived: all others cost one comparison.
 */
export class TxnStopwatch {
  readonly #durations: Histogram;
  /** Units of the histogram per millisecond. */
  readonly #partsOfMs: number;
  /** 0 while none is measured. */
  #zxid = 0;
  #sinceMs = 0;

  constructor(durations: Histogram, partsOfMs: number) {
    this.#durations = durations;
    this.#partsOfMs = partsOfMs;
  }

  /** No txn is being measured. */
  get isIdle(): boolean {
    return this.#zxid === 0;
  }

  start(zxid: number, nowMs: number): void {
    if (this.#zxid !== 0) return;
    this.#zxid = zxid;
    this.#sinceMs = nowMs;
  }

  /** True for the measured txn and later ones: `stop` must be called. */
  awaits(zxid: number): boolean {
    return this.#zxid !== 0 && zxid >= this.#zxid;
  }

  stop(nowMs: number): void {
    this.#durations.add((nowMs - this.#sinceMs) * this.#partsOfMs);
    this.#zxid = 0;
  }

  /** The txn will not arrive. */
  forget(): void {
    this.#zxid = 0;
  }
}
