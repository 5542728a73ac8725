/*
 * Checks of numeric options, where they are passed: NaN compares with nothing, so that a limit of NaN would be no
 * limit, and a timer of NaN fires at once.
 */

/**
 * A negative margin would make a holder certain beyond its session, and NaN forever.
 *
 * @throws RangeError
 */
export function checkMs(name: string, ms: number): void {
  if (!(ms >= 0)) throw new RangeError(`${name} is 0 or more milliseconds, not ${ms}`);
}

/** The same for a delay that must be finite. @throws RangeError */
export function checkEndingMs(name: string, ms: number): void {
  checkMs(name, ms);
  if (ms === Number.POSITIVE_INFINITY) throw new RangeError(`${name} comes to an end, and is not ${ms}`);
}

/** @throws RangeError */
export function checkCount(name: string, count: number): void {
  if (Number.isInteger(count) && count >= 1) return;
  throw new RangeError(`${name} is a whole number of at least 1, not ${count}`);
}

/** Infinity means no limit. @throws RangeError */
export function checkLimit(name: string, limit: number): void {
  if (limit !== Number.POSITIVE_INFINITY) checkCount(name, limit);
}
