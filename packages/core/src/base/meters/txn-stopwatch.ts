import type { Histogram } from './histogram.ts';

/**
 * Measures how long txns take to get somewhere. One txn is measured at a time, the first that comes after the one before has
 * arrived: all others cost a comparison.
 */
export class TxnStopwatch {
  readonly #durations: Histogram;
  /** What the histogram counts in: parts of a millisecond. */
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

  /** True of a txn that is the one, or behind it: `stop` is to be told. */
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
