// Silences in a series of events.

/**
 * The longest time between two events, one right after the other, of those that touch a span of time. A silence that
 * begins before the span or ends after it counts whole.
 *
 * @param times when something happened, in any order and unit
 * @param span `from`, `until`: in the same unit
 * @returns 0 when no two events touch the span; infinity when nothing happened after its beginning
 */
export function longestGap(times, { from, until }) {
  const sorted = Float64Array.from(times).sort();
  if (sorted.length === 0 || sorted[sorted.length - 1] < from) return Number.POSITIVE_INFINITY;
  let longest = 0;
  for (let i = 1; i < sorted.length; i++) {
    if (sorted[i] >= from && sorted[i - 1] <= until) longest = Math.max(longest, sorted[i] - sorted[i - 1]);
  }
  return longest;
}
