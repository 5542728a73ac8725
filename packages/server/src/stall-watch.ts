import { performance } from 'node:perf_hooks';
import type { Logger } from './logger.ts';

/** How often the loop is looked at, and what it may be late without a word. Milliseconds. */
const PERIOD_MS = 500;
const LATE_MS = 1000;

/**
 * Says when the event loop of this process stood still, because the process was stopped, its memory was swapped out or a
 * processor was missing: sessions may expire by that, and the log is where their owners look.
 */
export class StallWatch {
  readonly #logger: Logger;
  #timer: NodeJS.Timeout | null = null;
  #dueMs = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  start(): void {
    this.#dueMs = performance.now() + PERIOD_MS;
    this.#timer = setInterval(() => this.#look(), PERIOD_MS);
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #look(): void {
    const nowMs = performance.now();
    const lateMs = Math.round(nowMs - this.#dueMs);
    this.#dueMs = nowMs + PERIOD_MS;
    if (lateMs < LATE_MS) return;
    const advice =
      'look for swapping, a frozen machine or processors that others use up; sessions may have expired by it';
    this.#logger.log('warn', `the process stood still for ${lateMs} ms: ${advice}`, { event: 'stalled', ms: lateMs });
  }
}
