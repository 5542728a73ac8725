import { expect, test } from 'vitest';
import { DEFAULT_CORE_OPTIONS, DEFAULT_ENSEMBLE_OPTIONS } from '../base/options.ts';
import { makeMembership } from '../testing/linked-servers.ts';
import { zabOptionsOf } from './zab-options-of.ts';

/** The lease of a server with this configuration. */
function leaseMsOf(leaseTicks: number, tickTimeMs: number): number {
  const core = { ...DEFAULT_CORE_OPTIONS, snapshotDirectory: '/data', logDirectory: '/data', tickTimeMs };
  return zabOptionsOf(core, { ...DEFAULT_ENSEMBLE_OPTIONS, membership: makeMembership([1, 2, 3]), leaseTicks }).leaseMs;
}

test('a lease lasts as many ticks as configured, but no longer than a server can announce: 2**22 − 1 ms', () => {
  expect(leaseMsOf(2, 3000)).toBe(6000);
  expect(leaseMsOf(0, 3000)).toBe(0);
  expect(leaseMsOf(1, 4_194_302)).toBe(4_194_302);
  expect(leaseMsOf(2, 3_000_000)).toBe(4_194_303);
});
