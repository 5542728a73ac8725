/**
 * The numbers that a server appends to sequential znodes, and their order.
 *
 *     /locks/_c_5b2f…-lock-0000000007    the last ten characters: 7
 *
 * The counter belongs to the parent, has 32 bits, and counts every sequential child ever created below it. A Meerkat
 * server continues past 2^31 - 1, up to 4294967295 and then at 0; Apache's refuses to create another one at that point.
 * Concurrent contenders are far closer to each other than half of the range, so that the shorter way around the circle
 * shows the older one (serial numbers as in RFC 1982), before and after the counter has wrapped around.
 */

/**
 * The number at the end of a sequential znode's name, 0 to 4294967295; null for a name that has none.
 *
 * @example
 * sequenceOf('lock-0000000007') === 7;
 */
export function sequenceOf(name: string): number | null {
  const start = name.length - DIGITS;
  if (start < 0) return null;
  let sequence = 0;
  for (let i = start; i < name.length; i++) {
    const digit = name.charCodeAt(i) - ZERO;
    if (digit < 0 || digit > 9) return null;
    sequence = sequence * 10 + digit;
  }
  return sequence < RANGE ? sequence : null;
}

/** The name without the ten digits at its end; the whole name when it has none. */
export function withoutSequence(name: string): string {
  return sequenceOf(name) === null ? name : name.slice(0, -DIGITS);
}

/**
 * Orders sequence numbers by age: negative when `a` is older. Correct as long as they are less than 2^31 apart.
 *
 * @example
 * compareSequences(4294967295, 0) < 0; // the counter has wrapped around between them
 */
export function compareSequences(a: number, b: number): number {
  return (a - b) | 0;
}

/** Orders names of sequential znodes by age; names without a number come last, in the order of their characters. */
export function compareBySequence(a: string, b: string): number {
  const sequenceA = sequenceOf(a);
  const sequenceB = sequenceOf(b);
  if (sequenceA !== null && sequenceB !== null) return compareSequences(sequenceA, sequenceB);
  if (sequenceA !== null) return -1;
  if (sequenceB !== null) return 1;
  return a < b ? -1 : a > b ? 1 : 0;
}

const DIGITS = 10;
const ZERO = 0x30;
const RANGE = 2 ** 32;
