/**
 * A histogram with buckets that grow with the values.
 *
 *     0  1  2 … 7 │ 8–9  10–11  12–13  14–15 │ 16–19 … │ … 2^31 − 1
 *        one each │ four buckets for each power of two: the relative error is at most a quarter
 *
 * `add` changes a few numbers and one array element. Memory is allocated once, with the first value. Counts are never
 * reset: for an interval, compare with an earlier copy.
 */
export class Histogram {
  count = 0;
  sum = 0;
  /** The smallest and the largest value since the last `forgetExtremes`; Infinity and −Infinity without any. */
  min: number = Number.POSITIVE_INFINITY;
  max: number = Number.NEGATIVE_INFINITY;
  #buckets: Float64Array = NO_BUCKETS;

  /** Counts a value, truncated to an integer; less than 0 counts as 0. @param times how often it occurred */
  add(value: number, times = 1): void {
    if (this.#buckets === NO_BUCKETS) this.#buckets = new Float64Array(BUCKETS);
    const whole = value >= VALUE_MAX ? VALUE_MAX : value > 0 ? value | 0 : 0;
    this.count += times;
    this.sum += whole * times;
    if (whole < this.min) this.min = whole;
    if (whole > this.max) this.max = whole;
    this.#buckets[bucketOf(whole)]! += times;
  }

  /** A copy of the current counts. */
  copyBuckets(): Float64Array {
    return this.#buckets.slice();
  }

  /** How many values were less than 2 ** exponent; the exponent is at least 3. */
  countBelow(exponent: number): number {
    let count = 0;
    const end = Math.min(bucketOf(2 ** exponent), this.#buckets.length);
    for (let bucket = 0; bucket < end; bucket++) count += this.#buckets[bucket]!;
    return count;
  }

  /**
   * The value below which a fraction `part` of all values lies, as exact as the buckets are; NaN without any.
   *
   * @param since a copy of earlier counts: only later values are considered
   */
  quantile(part: number, since: Float64Array = NO_BUCKETS): number {
    const buckets = this.#buckets;
    let total = 0;
    for (let bucket = 0; bucket < buckets.length; bucket++) total += buckets[bucket]! - (since[bucket] ?? 0);
    if (total <= 0) return Number.NaN;
    const rank = Math.max(1, Math.ceil(part * total));
    let seen = 0;
    for (let bucket = 0; bucket < buckets.length; bucket++) {
      seen += buckets[bucket]! - (since[bucket] ?? 0);
      if (seen >= rank) return middleOf(bucket);
    }
    return middleOf(buckets.length - 1);
  }

  forgetExtremes(): void {
    this.min = Number.POSITIVE_INFINITY;
    this.max = Number.NEGATIVE_INFINITY;
  }
}

const NO_BUCKETS = new Float64Array(0);
const VALUE_MAX = 0x7fffffff;
/** Values below this have a bucket each. */
const EXACT = 8;
const BUCKETS = EXACT + 28 * 4;

function bucketOf(whole: number): number {
  if (whole < EXACT) return whole;
  if (whole > VALUE_MAX) return BUCKETS;
  const exponent = 31 - Math.clz32(whole);
  return EXACT + (exponent - 3) * 4 + ((whole >> (exponent - 2)) & 3);
}

function middleOf(bucket: number): number {
  if (bucket < EXACT) return bucket;
  const exponent = 3 + ((bucket - EXACT) >> 2);
  const width = 2 ** (exponent - 2);
  const least = 2 ** exponent + ((bucket - EXACT) & 3) * width;
  return least + Math.floor((width - 1) / 2);
}
