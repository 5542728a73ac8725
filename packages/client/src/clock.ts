import type { MonotonicClock, Random } from './machine/ports.ts';

/** Time, as the client needs it: to read, and to be woken. */
export interface Clock extends MonotonicClock {
  /** Calls back once, not before `delayMs` have passed. @returns cancels it */
  schedule(delayMs: number, callback: () => void): () => void;
  /** Calls back as soon as everything that is running now, promises included, has come to its end. */
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
  // Unlike a microtask it runs after all promises that are settled by now have been looked at, so that what they ask
  // for leaves in one write.
  defer: (callback) => process.nextTick(callback),
};

export const SYSTEM_RANDOM: Random = {
  uint32: () => Math.floor(Math.random() * 2 ** 32),
};

/** Longest delay of a timer, milliseconds, 24.8 days; a longer one would ring at once. */
const TIMER_MS_MAX = 0x7fffffff;
