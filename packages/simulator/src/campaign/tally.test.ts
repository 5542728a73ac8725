import { expect, test } from 'vitest';
import { INPUTS } from '../coverage.ts';
import { DRAWN_FAULT_KINDS, type Fault } from '../fault.ts';
import { MEMBERS_CHANGED, SIGHTINGS } from '../sightings.ts';
import type { SimulateStats } from '../simulate.ts';
import { CAMPAIGN_SHAPES } from './shapes.ts';
import { Tally } from './tally.ts';

const FAULT: Fault = { kind: 'crash', atMs: 0, durationMs: 1, hosts: ['zk1'], others: [], chance: 1 };

/** A virtual minute in which everything has happened that a campaign counts, but for these kinds of faults. */
function statsOf(...left: readonly string[]): SimulateStats {
  const names = [...INPUTS, MEMBERS_CHANGED, ...Object.values(SIGHTINGS).flat()];
  const kinds = DRAWN_FAULT_KINDS.filter((kind) => !left.includes(kind));
  return {
    virtualMs: 60_000,
    events: 1,
    operations: 500,
    succeeded: 400,
    inDoubt: 1,
    watchEvents: 1,
    faults: kinds.length,
    faultsByKind: new Map(kinds.map((kind) => [kind, 1])),
    minutes: 1,
    succeededUnderFaults: 400,
    fed: new Map(names.map((name) => [name, 1])),
    epochs: 2,
    serverStarts: 3,
    recoveredMs: 100,
  };
}

function tallyOf(stats: SimulateStats): Tally {
  const tally = new Tally();
  tally.add(CAMPAIGN_SHAPES[0]!, { seed: 1, stats, plan: DRAWN_FAULT_KINDS.map(() => FAULT), violations: [] });
  return tally;
}

test('a campaign in which all faults were carried out that seeds draw is below no floor', () => {
  const tally = tallyOf(statsOf());
  expect(tally.lacks).toEqual([]);
  expect(tally.format()).not.toContain('BELOW ITS FLOOR');
});

test('a kind of fault that was never carried out is named', () => {
  const tally = tallyOf(statsOf('rot'));
  expect(tally.lacks).toEqual(['no fault was carried out: rot']);
  expect(tally.format()).toContain('BELOW ITS FLOOR: no fault was carried out: rot');
});
