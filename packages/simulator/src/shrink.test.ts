import { describe, expect, test } from 'vitest';
import { FAULT_KINDS, type Fault, planFaults } from './fault.ts';
import { SeededRandom } from './seeded-random.ts';
import { shorten, shrink } from './shrink.ts';

describe('shrinking', () => {
  test('finds the items that are needed among many', async () => {
    const items = Array.from({ length: 100 }, (_, i) => i);
    let runs = 0;
    const found = await shrink(items, async (some) => {
      runs++;
      return some.includes(17) && some.includes(63) && some.includes(64);
    });
    expect(found).toEqual([17, 63, 64]);
    expect(runs).toBeLessThan(100);
  });

  test('finds that nothing is needed', async () => {
    expect(await shrink([1, 2, 3], async () => true)).toEqual([]);
  });

  test('returns a list of which everything is needed', async () => {
    const items = [1, 2, 3, 4, 5];
    expect(await shrink(items, async (some) => some.length === 5)).toEqual(items);
  });

  test('keeps a pair of faults of a plan, and makes them short', async () => {
    const options = { kinds: FAULT_KINDS, durationMs: 60_000, servers: ['zk1', 'zk2'], clients: [], pauseMs: 500 };
    const plan = planFaults(new SeededRandom(3), options);
    // A failure by decree: a crash that lasts some time, and a pause behind it.
    const fails = async (faults: readonly Fault[]): Promise<boolean> => {
      const crash = faults.findIndex(({ kind, durationMs }) => kind === 'crash' && durationMs > 20);
      return crash >= 0 && faults.slice(crash).some(({ kind }) => kind === 'pause');
    };
    expect(await fails(plan)).toBe(true);
    const [first, second, ...others] = await shorten(await shrink(plan, fails), fails);
    expect([first?.kind, second?.kind, others]).toEqual(['crash', 'pause', []]);
    expect(first?.durationMs).toBeLessThanOrEqual(41);
    expect(second?.durationMs).toBe(1);
  });
});
