/**
 * How far the clocks of two servers of an ensemble may run apart: what one of them counts as a second the other one counts
 * as less than 1 + CLOCK_DRIFT seconds. Ten times what operating systems let a clock be slewed by is 0.5 %.
 */
export const CLOCK_DRIFT: number = 1 / 32;

/** So long a server waits for what takes another one `ms` by its own clock. */
export function byAnyClock(ms: number): number {
  return ms * (1 + CLOCK_DRIFT);
}

/** So long a server goes on that must be over when another one has counted `ms`. */
export function withinAnyClock(ms: number): number {
  return ms * (1 - CLOCK_DRIFT);
}
