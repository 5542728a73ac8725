import type { MonotonicClock, Random } from './machine/ports.ts';

/** The clock and timers that the client needs. */
export interface Clock extends MonotonicClock {
  /** Calls back once, not before `delayMs` have passed. @returns cancels the timer */
  schedule(delayMs: number, callback: () => void): () => void;
  /** Calls back when all code that is running now, including promise jobs, has completed. */
  defer(callback: () => void): void;
}

/** The clock of this machine. */
export const SYSTEM_CLOCK: Clock = {
  monotonicMs: () => performance.now(),
  schedule(delayMs, callback) {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const arm = (leftMs: number): void => {
      if (leftMs > TIMER_MS_MAX) timer = setTimeout(() => arm(leftMs - TIMER_MS_MAX), TIMER_MS_MAX);
      else timer = setTimeout(callback, leftMs);
    };
    arm(delayMs);
    return () => clearTimeout(timer);
  },
  // Unlike a microtask it runs after the reactions of all promises settled by now, so that their requests leave in one
  // write.
  defer: (callback) => process.nextTick(callback),
};

export const SYSTEM_RANDOM: Random = {
  uint32: () => Math.floor(Math.random() * 2 ** 32),
};

/** Longest delay of a timer, milliseconds, 24.8 days; a longer one would fire at once. */
const TIMER_MS_MAX = 0x7fffffff;
