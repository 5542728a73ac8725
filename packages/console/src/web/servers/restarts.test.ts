import { expect, test } from 'vitest';
import type { ServerSample, ServersSample } from '../../api/messages.ts';
import { readRestarts } from './restarts.ts';

const KEPT_MS = 600_000;
const DAY_MS = 86_400_000;

interface Sampled {
  readonly role: string | null;
  readonly uptimeMs?: number;
  readonly version?: string;
}

function sampleOf(atMs: number, servers: Readonly<Record<string, Sampled>>): ServersSample {
  return {
    atMs,
    servers: Object.entries(servers).map(([name, { role, uptimeMs, version = '3.8.0' }]) => {
      const problem = role === null ? 'nothing listens there' : null;
      const metrics = uptimeMs === undefined ? {} : { zk_uptime: uptimeMs };
      return { name, role, problem, version: role === null ? null : version, metrics } as unknown as ServerSample;
    }),
  };
}

function statesOf(samples: readonly ServersSample[]) {
  return readRestarts(samples, KEPT_MS)?.map(({ name, state }) => `${name} ${state}`) ?? null;
}

test('servers that keep running are not a restart, and neither are those started together', () => {
  const up = { role: 'follower', uptimeMs: DAY_MS };
  expect(statesOf([sampleOf(DAY_MS, { a: up, b: up })])).toBeNull();
  expect(statesOf([sampleOf(DAY_MS, { a: { ...up, uptimeMs: 1000 }, b: { ...up, uptimeMs: 2000 } })])).toBeNull();
  expect(statesOf([])).toBeNull();
});

test('a stopped server is away, then restarted; the leader is the last one due', () => {
  const others = { a: { role: 'leader' }, b: { role: 'follower' }, d: { role: 'observer' } };
  const samples = [
    sampleOf(0, { ...others, c: { role: 'follower' } }),
    sampleOf(2000, { ...others, c: { role: null } }),
  ];
  expect(statesOf(samples)).toEqual(['c away', 'd due', 'b due', 'a due']);
  samples.push(sampleOf(4000, { ...others, c: { role: 'follower', version: '3.9.0' } }));
  expect(statesOf(samples)).toEqual(['c restarted', 'd due', 'b due', 'a due']);
  expect(readRestarts(samples, KEPT_MS)?.[0]).toMatchObject({ versionBefore: '3.8.0', version: '3.9.0' });
});

test('a restart between two samples, or before the first, is detected by the age of the process', () => {
  const old = { role: 'follower', uptimeMs: DAY_MS };
  const young = { role: 'follower', uptimeMs: 1000 };
  expect(statesOf([sampleOf(DAY_MS, { a: old, b: young })])).toEqual(['b restarted', 'a due']);
  const samples = [sampleOf(DAY_MS, { a: old, b: old }), sampleOf(DAY_MS + 2000, { a: young, b: young })];
  expect(statesOf(samples)).toEqual(['a restarted', 'b restarted']);
});

test('a server that looks for a leader was not restarted; different versions are an upgrade in progress', () => {
  const samples = [sampleOf(0, { a: { role: 'follower' }, b: { role: 'leader' } })];
  const { servers } = sampleOf(2000, { a: { role: 'looking' }, b: { role: 'leader' } });
  expect(statesOf([...samples, { atMs: 2000, servers }])).toBeNull();
  expect(statesOf([sampleOf(0, { a: { role: 'follower', version: '3.9.0' }, b: { role: 'leader' } })])).toEqual([
    'a due',
    'b due',
  ]);
});
