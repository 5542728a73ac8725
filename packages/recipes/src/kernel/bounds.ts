/*
 * What the numbers among the options of recipes may be. They are checked where they are given: NaN compares with nothing, so
 * that what it limits has no limit, and a timer that is set by it rings at once.
 */

/**
 * A margin of less than nothing would make a holder sure beyond its session, and one that is no number sure for ever.
 *
 * @throws RangeError
 */
export function checkMs(name: string, ms: number): void {
  if (!(ms >= 0)) throw new RangeError(`${name} is 0 or more milliseconds, not ${ms}`);
}

/** The same for a time after which something happens that would never happen otherwise. @throws RangeError */
export function checkEndingMs(name: string, ms: number): void {
  checkMs(name, ms);
  if (ms === Number.POSITIVE_INFINITY) throw new RangeError(`${name} comes to an end, and is not ${ms}`);
}

/** @throws RangeError */
export function checkCount(name: string, count: number): void {
  if (Number.isInteger(count) && count >= 1) return;
  throw new RangeError(`${name} is a whole number of at least 1, not ${count}`);
}

/** There is none when it is infinite. @throws RangeError */
export function checkLimit(name: string, limit: number): void {
  if (limit !== Number.POSITIVE_INFINITY) checkCount(name, limit);
}
