import { describe, expect, test } from 'vitest';
import type { FaultKind } from './fault.ts';
import { shrinkFailure } from './shrink-failure.ts';
import { type SimulateOptions, type SimulateResult, simulate } from './simulate.ts';

/** Those that a lone server lives through. */
const FAULTS: readonly FaultKind[] = [
  'crash',
  'power',
  'stop',
  'restart-all',
  'pause',
  'isolate',
  'one-way',
  'port',
  'black-hole',
  'slow',
  'break',
  'flap',
  'disk-slow',
  'disk-stall',
  'disk-full',
  'skew',
];

describe('a simulated ensemble', () => {
  test('is the same for the same seed, faults and checkers included', async () => {
    const options = { servers: 3, observers: 1, minutes: 0.2, seed: 31, faults: FAULTS };
    const first = await simulate(options);
    const again = await simulate(options);
    expect(again.traceHash).toBe(first.traceHash);
    expect(again.stats).toEqual(first.stats);
    expect(first.stats.epochs).toBeGreaterThan(0);
  });

  test('works in a quiet world: one leader, everything answered, all trees equal', async () => {
    const { violations, stats } = await simulate({ seed: 1, servers: 3, observers: 1, minutes: 0.2, faults: [] });
    expect(violations).toEqual([]);
    // The simulation kills the leader at its end, and the next one before its epoch has begun.
    expect(stats.epochs).toBe(2);
    expect(stats.succeeded).toBeGreaterThan(50);
    expect(stats.recoveredMs).not.toBeNull();
  });
});

describe('a simulation', () => {
  test('is the same for the same seed, faults included, and another one for another', async () => {
    const options = { servers: 1, minutes: 0.3, faults: FAULTS };
    const first = await simulate({ ...options, seed: 11 });
    const again = await simulate({ ...options, seed: 11 });
    const other = await simulate({ ...options, seed: 12 });
    expect(again.traceHash).toBe(first.traceHash);
    expect(again.stats).toEqual(first.stats);
    expect(other.traceHash).not.toBe(first.traceHash);
    expect(first.violations).toEqual([]);
    expect(first.stats.succeeded).toBeGreaterThan(50);
  });

  test('repeats a run from its plan', async () => {
    const options = { servers: 1, minutes: 0.2, seed: 21 };
    const first = await simulate({ ...options, faults: FAULTS });
    const again = await simulate({ ...options, plan: first.plan });
    expect(again.traceHash).toBe(first.traceHash);
  });

  test('lets one server keep its promises in five seeds', async () => {
    for (let seed = 100; seed < 105; seed++) {
      const { violations } = await simulate({ seed, servers: 1, minutes: 0.3, faults: FAULTS });
      expect(violations, `seed ${seed}`).toEqual([]);
    }
  });

  test('is over when its faults are: a disk that hangs works again once everything is healed', async () => {
    const stall = {
      kind: 'disk-stall',
      atMs: 5000,
      durationMs: 100_000,
      hosts: ['zk1'],
      others: [],
      chance: 1,
    } as const;
    const { violations, stats } = await simulate({ seed: 5, servers: 1, minutes: 0.2, plan: [stall] });
    expect(violations).toEqual([]);
    expect(stats.recoveredMs).toBeLessThan(5000);
  });
});

describe('shrinking a failure', () => {
  test('leaves the one fault that is needed, as short as it can be', async () => {
    const crash = { kind: 'crash', durationMs: 1000, others: [], chance: 1 } as const;
    const plan = [500, 1500, 2500, 3500].map((atMs) => ({ ...crash, atMs, hosts: ['zk1'] }));
    const options = { seed: 5, servers: 1, minutes: 0.1, plan };
    // In this world a server must not be down for more than 100 ms at the time of the third crash.
    const run = async (changed: SimulateOptions): Promise<SimulateResult> => {
      const result = await simulate(changed);
      const isBroken = result.plan.some(({ atMs, durationMs }) => atMs === 2500 && durationMs > 100);
      const violations = [{ invariant: 'X1', message: 'it was down for too long', atMs: 2600, servers: [1] }];
      return { ...result, violations: isBroken ? violations : [] };
    };
    const smallest = await shrinkFailure(options, await run(options), () => false, run);
    expect(smallest.plan).toHaveLength(1);
    expect(smallest.plan[0]).toMatchObject({ kind: 'crash', atMs: 2500 });
    expect(smallest.plan[0]?.durationMs).toBeLessThan(250);
  });
});
