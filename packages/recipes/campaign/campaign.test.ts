import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Bundle, commandOf, findSimulations, makeBundle } from './bundle.ts';
import { Campaign, type CampaignEvents } from './campaign.ts';
import { parseOptions } from './options.ts';
import { appendRecord, endLastLine, readRecords } from './record-file.ts';
import type { SeedOutcome } from './seed-outcome.ts';
import { divide } from './slices.ts';
import { Totals } from './totals.ts';

const CHEAP = 'barriers/count-down-latch';

let bundle: Bundle;
let directory: string;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'campaign-'));
  bundle = await makeBundle(findSimulations());
});
afterAll(() => {
  bundle.remove();
  rmSync(directory, { recursive: true });
});

async function runSeeds(
  jobs: number,
  seedsMax: number,
  from: Bundle = bundle,
): Promise<{ totals: Totals; outcomes: SeedOutcome[]; violations: string[] }> {
  const totals = new Totals([CHEAP]);
  const outcomes: SeedOutcome[] = [];
  const violations: string[] = [];
  const events: CampaignEvents = {
    onViolation: (text) => violations.push(text),
    onProgress: () => {},
    onSliceDone: (_, done) => outcomes.push(...done),
  };
  await new Campaign(from, divide([CHEAP], { first: 1, last: 2 }, [], seedsMax), totals, events).run(jobs);
  return { totals, outcomes: outcomes.toSorted((a, b) => a.seed - b.seed), violations };
}

test('a simulation runs outside of vitest, with the same trace in every process', async () => {
  const together = await runSeeds(1, 2);
  expect(together.violations).toEqual([]);
  expect(together.outcomes.map(({ seed }) => seed)).toEqual([1, 2]);
  const [first, second] = together.outcomes.map(({ runs }) => runs);
  expect(first?.map(({ title }) => title)).toEqual(['each count is applied once, and a barrier blocks all waiters']);
  expect(together.totals.virtualMs).toBeGreaterThan(1000);
  expect(first?.[0]?.traces).not.toEqual(second?.[0]?.traces);

  const apart = await runSeeds(2, 1);
  const said = ({ outcomes }: typeof apart): unknown =>
    outcomes.map(({ runs }) => runs.map(({ virtualMs, traces }) => [virtualMs, traces]));
  expect(said(apart)).toEqual(said(together));
});

test('every error of a simulation, and its exit, is a violation with a command to reproduce it', async () => {
  const failing = join(directory, 'failing.mjs');
  // A worker as the campaign sees it: the first seed fails, and the second ends the process.
  const run = `{ title: 'holds', virtualMs: 1, traces: [], cpuMs: 1, violation: 'Error: it does not' }`;
  writeFileSync(
    failing,
    `process.on('message', ({ first }) => {
       process.send({ kind: 'begin', seed: first });
       if (first === 2) process.exit(7);
       process.send({ kind: 'seed', outcome: { seed: first, runs: [${run}] } });
       process.send({ kind: 'begin', seed: 2 }, () => process.exit(7));
     });`,
  );
  const { violations, totals, outcomes } = await runSeeds(1, 2, { ...bundle, workerFile: failing });
  expect(violations).toEqual([
    `${CHEAP}, seed 1: holds\n  Error: it does not\n  to repeat it: ${commandOf(CHEAP, 1)}`,
    `${CHEAP}, seed 2: runs to its end\n  its process has ended by itself (exit code 7)\n  to repeat it: ${commandOf(CHEAP, 2)}`,
  ]);
  expect(totals.violations).toBe(2);
  expect(outcomes.map(({ seed }) => seed)).toEqual([1, 2]);
});

test('recorded slices are read back for the same sources, and a truncated line is ignored', () => {
  const file = join(directory, 'slices.jsonl');
  const record = { name: CHEAP, first: 1, last: 2, commit: 'abc', bundle: 'one', outcomes: [] };
  expect(readRecords(file, 'one')).toEqual([]);
  appendRecord(file, record);
  appendRecord(file, { ...record, bundle: 'two' });
  writeFileSync(file, '{"name":"barr', { flag: 'a' });
  expect(readRecords(file, 'one')).toEqual([record]);
  endLastLine(file);
  appendRecord(file, { ...record, first: 3, last: 3 });
  expect(readRecords(file, 'one')).toEqual([record, { ...record, first: 3, last: 3 }]);
});

test('simulations are named with or without their folder, or all of a folder at once', () => {
  const all = ['locks/mutex', 'locks/semaphore', 'queues/queue'];
  const namesOf = (...args: string[]): unknown => {
    const options = parseOptions([...args, '--seeds', '1..3'], all);
    return typeof options === 'number' ? options : options.names;
  };
  expect(namesOf('mutex', 'queues')).toEqual(['locks/mutex', 'queues/queue']);
  expect(namesOf('locks', 'locks/mutex')).toEqual(['locks/mutex', 'locks/semaphore']);
  expect(namesOf()).toEqual([]);
});
