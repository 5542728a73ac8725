import type { Surroundings } from '../surroundings.ts';

/** A clock that moves when the test says so, and numbers that are drawn from a list of one. */
export class VirtualSurroundings implements Surroundings {
  nowMs = 0;
  /** What the next draws give. */
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

  /** Lets promises run, then moves the clock from timer to timer, until none is set any more. */
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

/** Everything that waits for promises alone has run. */
export function drainMicrotasks(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
