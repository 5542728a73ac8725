/**
 * How far the clocks of two servers of an ensemble may drift apart: while one counts a second, the other one counts
 * less than 1 + CLOCK_DRIFT seconds. Ten times the rate at which operating systems slew a clock is 0.5 %.
 */
export const CLOCK_DRIFT: number = 1 / 32;

/** How long a server must wait, by its own clock, until `ms` have passed on another server's clock. */
export function byAnyClock(ms: number): number {
  return ms * (1 + CLOCK_DRIFT);
}

/**
 * How long a server may continue, by its own clock, if it must stop before `ms` have passed on another server's clock.
 */
export function withinAnyClock(ms: number): number {
  return ms * (1 - CLOCK_DRIFT);
}
