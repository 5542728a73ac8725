import type { Histogram } from '@meerkat/core';
import { COUNTER_SETS, COUNTERS, type MetricsSource, SUMMARIES, SUMMARY_SETS } from './catalogue.ts';

/** Counts of a histogram since the last `srst`. */
export interface Counted {
  readonly count: number;
  readonly sum: number;
  readonly min: number;
  readonly max: number;
  quantile(part: number): number;
}

/**
 * The values at the last `srst`, which `mntr` and `monitor` subtract. The counters themselves are not reset, as
 * Prometheus takes a counter that decreases for a restart.
 */
export class MonitorBaseline {
  readonly #numbers = new Map<string, number>();
  readonly #histograms = new Map<
    Histogram,
    { readonly count: number; readonly sum: number; readonly buckets: Float64Array }
  >();

  /** @param name of a counter, with its key for one of a set */
  since(name: string, value: number): number {
    return value - (this.#numbers.get(name) ?? 0);
  }

  counted(histogram: Histogram): Counted {
    const base = this.#histograms.get(histogram);
    const count = histogram.count - (base?.count ?? 0);
    return {
      count,
      sum: histogram.sum - (base?.sum ?? 0),
      min: count === 0 ? 0 : histogram.min,
      max: count === 0 ? 0 : histogram.max,
      quantile: (part) => (count === 0 ? 0 : Math.min(histogram.max, histogram.quantile(part, base?.buckets))),
    };
  }

  /** `srst`. */
  reset(source: MetricsSource): void {
    for (const { name, value } of COUNTERS) this.#numbers.set(name, value(source));
    for (const { name, members } of COUNTER_SETS) {
      for (const [key, value] of members(source)) this.#numbers.set(`${key}_${name}`, value);
    }
    for (const { histogram } of SUMMARIES) this.#keep(histogram(source));
    for (const { members } of SUMMARY_SETS) for (const [, histogram] of members(source)) this.#keep(histogram);
  }

  #keep(histogram: Histogram): void {
    this.#histograms.set(histogram, { count: histogram.count, sum: histogram.sum, buckets: histogram.copyBuckets() });
    histogram.forgetExtremes();
  }
}
