import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Histogram } from './histogram.ts';

function histogramOf(values: readonly number[]): Histogram {
  const histogram = new Histogram();
  for (const value of values) histogram.add(value);
  return histogram;
}

describe('a histogram', () => {
  test('knows count, sum and extremes of its values', () => {
    const { count, sum, min, max } = histogramOf([3, 5, 1000]);
    expect({ count, sum, min, max }).toEqual({ count: 3, sum: 1008, min: 3, max: 1000 });
  });

  test('has no quantiles while it is empty', () => {
    expect(new Histogram().quantile(0.5)).toBeNaN();
  });

  test('is exact below 8, and within a quarter above', () => {
    const value = fc.nat({ max: 0x7fffffff });
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 50 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (all, part) => {
          const sorted = all.toSorted((a, b) => a - b);
          const exact = sorted[Math.max(1, Math.ceil(part * all.length)) - 1]!;
          const found = histogramOf(all).quantile(part);
          expect(Math.abs(found - exact)).toBeLessThanOrEqual(exact < 8 ? 0 : exact / 4);
        },
      ),
    );
  });

  test('counts exactly what is less than a power of two', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 100_000 })), fc.integer({ min: 3, max: 20 }), (all, exponent) => {
        const below = all.filter((value) => value < 2 ** exponent).length;
        expect(histogramOf(all).countBelow(exponent)).toBe(below);
      }),
    );
  });

  test('clamps values that are too large or negative', () => {
    const histogram = histogramOf([-1, 1e12]);
    expect(histogram.min).toBe(0);
    expect(histogram.max).toBe(0x7fffffff);
    expect(histogram.countBelow(31)).toBe(2);
  });

  test('computes quantiles of the values since a copy', () => {
    const histogram = histogramOf([1, 1, 1]);
    const before = histogram.copyBuckets();
    histogram.add(7);
    expect(histogram.quantile(0.5)).toBe(1);
    expect(histogram.quantile(0.5, before)).toBe(7);
  });
});
