// Gaps in a series of events.

/**
 * The longest gap between two successive events that overlaps a time span. A gap that begins before the span or ends
 * after it counts in full.
 *
 * @param times of the events, in any order and unit
 * @param span `from`, `until`, in the same unit
 * @returns 0 when no gap overlaps the span; infinity when there is no event after its beginning
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
