/*
 * What the numbers among the options may be. NaN, which comes of a setting that is missing, compares with nothing: what it
 * limits has no limit, and a timer that it sets rings at once.
 */

/** A limit that has passed already is none of these: it ends the call at once. @throws RangeError */
export function checkTimeout(timeoutMs: number | undefined): void {
  if (Number.isNaN(timeoutMs)) throw new RangeError('timeoutMs is a number of milliseconds, not NaN');
}

/** @throws RangeError for what is no number, or outside of `min` and `max` */
export function checkRange(name: string, value: number, min: number, max: number = Number.POSITIVE_INFINITY): void {
  if (value >= min && value <= max) return;
  const range = max === Number.POSITIVE_INFINITY ? `at least ${min}` : `from ${min} to ${max}`;
  throw new RangeError(`${name} is ${range}, not ${value}`);
}
