import type { Surroundings } from '../surroundings.ts';

/** A clock that the test moves, and a constant as random number. */
export class VirtualSurroundings implements Surroundings {
  nowMs = 0;
  /** The next random numbers. */
  uint32 = 0;
  /** Delays of all timers ever set, milliseconds. */
  readonly delaysMs: number[] = [];
  readonly #timers: Set<{ readonly atMs: number; readonly run: () => void }> = new Set();

  readonly clock = {
    monotonicMs: (): number => this.nowMs,
    schedule: (delayMs: number, run: () => void): (() => void) => {
      const timer = { atMs: this.nowMs + delayMs, run };
      this.delaysMs.push(delayMs);
      this.#timers.add(timer);
      return () => this.#timers.delete(timer);
    },
  };

  readonly random = { uint32: (): number => this.uint32 };

  get timerCount(): number {
    return this.#timers.size;
  }

  /** Runs promise jobs, then moves the clock from timer to timer, until none is set. */
  async runTimers(): Promise<void> {
    await drainMicrotasks();
    for (;;) {
      const next = [...this.#timers].sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) return;
      this.#timers.delete(next);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.run();
      await drainMicrotasks();
    }
  }
}

/** Resolves when all pending promise jobs have run. */
export function drainMicrotasks(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
