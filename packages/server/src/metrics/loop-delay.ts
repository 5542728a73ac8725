import { performance } from 'node:perf_hooks';
import { Histogram } from '@meerkat/core';

/** The delay of the event loop: how late a timer of 20 ms fires. It runs only while it is read. */
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
