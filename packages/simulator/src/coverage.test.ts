import { beforeAll, describe, expect, test } from 'vitest';
import { Coverage } from './coverage.ts';
import { FAULT_KINDS } from './fault.ts';
import { SIGHTINGS } from './sightings.ts';
import { type SimulateResult, simulate } from './simulate.ts';
import { TRAITS, type Trait } from './traits.ts';

/** The first two reach everything. Unrelated changes may make the others necessary. */
const SEEDS = new Set([26, 30, ...Array.from({ length: 40 }, (_, i) => i + 1)]);

/** The same for the worlds with traits. */
const SEEDS_OF_TRAITS = [6, 10, 5, 2, 3, 4];

const results: SimulateResult[] = [];
beforeAll(async () => {
  for (const seed of SEEDS) {
    results.push(await simulate({ seed, servers: 3, observers: 1 }));
    if (coverageOf(results).lacks().length === 0) break;
  }
}, 600_000);

function coverageOf(runs: readonly SimulateResult[]): Coverage {
  const coverage = new Coverage();
  for (const run of runs) coverage.add(run);
  return coverage;
}

function isAboutTrait(lack: string): boolean {
  return lack.includes('made no difference');
}

describe('runs cover enough to be worth checking', () => {
  test('every kind of fault was carried out, every checker was fed, and operations succeeded above the floor', () => {
    expect(results.flatMap(({ violations }) => violations)).toEqual([]);
    expect(coverageOf(results).lacks()).toEqual([]);
  });

  test('every trait of a world makes a difference', async () => {
    // Short txns leave no room for large values and sessions.
    const worlds: readonly (readonly Trait[])[] = [['short-txns'], TRAITS.filter((trait) => trait !== 'short-txns')];
    const shape = { servers: 3, observers: 1, minutes: 0.4 };
    const runs: SimulateResult[] = [];
    for (const traits of worlds) {
      for (const seed of SEEDS_OF_TRAITS) {
        runs.push(await simulate({ ...shape, seed, traits }));
        if (!coverageOf(runs).lacks([], traits).some(isAboutTrait)) break;
      }
    }
    expect(runs.flatMap(({ violations }) => violations)).toEqual([]);
    expect(coverageOf(runs).lacks([], TRAITS).filter(isAboutTrait)).toEqual([]);
  });

  test('a plain world is reported as lacking every trait', async () => {
    const plain = await simulate({ seed: 1, servers: 3, observers: 1, minutes: 0.2, traits: [] });
    const lacks = coverageOf([plain]).lacks([], TRAITS);
    for (const trait of TRAITS) {
      for (const name of SIGHTINGS[trait]) expect(lacks).toContain(`${trait} made no difference: no ${name}`);
    }
  });

  test('an idle nemesis is reported as lacking every fault', async () => {
    const idle = await simulate({ seed: 1, servers: 3, observers: 1, minutes: 0.2, plan: [] });
    const lacks = coverageOf([{ ...idle, plan: results[0]!.plan }]).lacks();
    for (const kind of FAULT_KINDS) expect(lacks).toContain(`no fault was carried out: ${kind}`);
    expect(lacks).toContain('no checker was fed: truncated');
    expect(lacks.find((lack) => lack.includes('of the planned faults'))).toMatch(/^0 % /);
  });

  test('worlds in which nothing succeeds are reported', () => {
    const [first] = results;
    const stats = { ...first!.stats, succeededUnderFaults: 3, fed: new Map() };
    const lacks = coverageOf([{ ...first!, stats }]).lacks();
    expect(lacks).toContain('3 operations a virtual minute succeeded under faults, 300 are due');
    expect(lacks).toContain('no checker was fed: applied');
  });
});
