import { performance } from 'node:perf_hooks';
import { Histogram } from '@meerkat/core';

/** How late the event loop is: a timer of 20 ms that looks at the clock when it rings. Runs while somebody reads it. */
export class LoopDelay {
  /** Microseconds. */
  readonly delays: Histogram = new Histogram();
  #timer: NodeJS.Timeout | null = null;
  #dueMs = 0;

  start(): void {
    if (this.#timer !== null) return;
    this.#arm();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #arm(): void {
    this.#dueMs = performance.now() + PERIOD_MS;
    this.#timer = setTimeout(this.#onDue, PERIOD_MS);
    this.#timer.unref();
  }

  readonly #onDue = (): void => {
    this.delays.add((performance.now() - this.#dueMs) * 1000);
    this.#arm();
  };
}

const PERIOD_MS = 20;
