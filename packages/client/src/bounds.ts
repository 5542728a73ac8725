/*
 * Checks of numeric options. NaN, which results from a missing setting, compares with nothing: a limit of NaN would be
 * no limit, and a timer of NaN fires at once.
 */

/** A timeout of 0 or less is valid: it ends the call at once. @throws RangeError */
export function checkTimeout(timeoutMs: number | undefined): void {
  if (Number.isNaN(timeoutMs)) throw new RangeError('timeoutMs is a number of milliseconds, not NaN');
}

/** @throws RangeError for what is not a number, or outside of `min` and `max` */
export function checkRange(name: string, value: number, min: number, max: number = Number.POSITIVE_INFINITY): void {
  if (value >= min && value <= max) return;
  const range = max === Number.POSITIVE_INFINITY ? `at least ${min}` : `from ${min} to ${max}`;
  throw new RangeError(`${name} is ${range}, not ${value}`);
}
