import type { Fault, FaultKind } from '@meerkat/simulator';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Nemesis } from './nemesis.ts';
import { type Cut, formatCut, type TortureNetwork } from './network.ts';
import { RealEnsemble } from './real-ensemble.ts';
import type { ServerFiles } from './server-files.ts';

let cuts: readonly string[] = [];
let said: string[] = [];
let nemesis: Nemesis;

const network: TortureNetwork = {
  name: 'none',
  places: [],
  commandOf: () => [],
  redirectionsOf: () => [],
  connectString: () => '',
  serverAt: () => 0,
  setCuts: (all: readonly Cut[]) => {
    cuts = all.map(formatCut);
  },
  delay: null,
  breakStreams: null,
  close: async () => {},
};

/** Three servers that are not running, and one client. */
beforeEach(() => {
  vi.useFakeTimers();
  cuts = [];
  said = [];
  const files = [1, 2, 3].map((id) => ({ id }) as ServerFiles);
  const ensemble = new RealEnsemble(files, network, { onMessage() {}, onStarted() {}, onDied() {} });
  nemesis = new Nemesis(
    ensemble,
    network,
    ['c1'],
    (what) => said.push(what),
    () => {},
  );
});

afterEach(() => {
  vi.useRealTimers();
});

function fault(kind: FaultKind, atMs: number, durationMs: number, hosts: string[], others: string[] = []): Fault {
  return { kind, atMs, durationMs, hosts, others, chance: 1 };
}

it('faults start on schedule and end after their duration; a link cut by two faults stays cut until both end', () => {
  nemesis.unleash([fault('isolate', 100, 1000, ['zk1'], ['zk2']), fault('one-way', 600, 1000, ['zk1'], ['zk2', 'c1'])]);
  vi.advanceTimersByTime(99);
  expect(cuts).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(cuts).toEqual(['zk1>zk2', 'zk2>zk1']);
  vi.advanceTimersByTime(500);
  expect(cuts).toEqual(['zk1>zk2', 'zk2>zk1', 'zk1>c1']);
  vi.advanceTimersByTime(500);
  expect(cuts).toEqual(['zk1>zk2', 'zk1>c1']);
  vi.advanceTimersByTime(500);
  expect(cuts).toEqual([]);
  expect([...nemesis.counts]).toEqual([
    ['isolate', 1],
    ['one-way', 1],
  ]);
  expect(said).toEqual(['100ms isolate zk1 | zk2 for 1000ms #1', '600ms one-way zk1 | zk2,c1 for 1000ms #1']);
});

it('clients do not talk to each other, so no link between them is cut', () => {
  nemesis.unleash([fault('partition', 0, 1000, ['zk1', 'c1'], ['zk2', 'c2'])]);
  vi.advanceTimersByTime(0);
  expect(cuts).not.toContain('c1>c2');
  expect(cuts).toContain('c1>zk2');
});

it('a cut port is cut for all hosts, in both directions', () => {
  nemesis.unleash([fault('port', 0, 1000, ['zk2'])]);
  vi.advanceTimersByTime(0);
  const kind = cuts[0]!.split(':')[1]!;
  const dialers = kind === 'client' ? ['c1'] : ['zk1', 'zk3'];
  expect(cuts).toEqual(dialers.flatMap((one) => [`${one}>zk2 zk2:${kind}`, `zk2>${one} zk2:${kind}`]));
});

it('without a leader a fault of the leader has no victim', () => {
  nemesis.unleash([fault('isolate', 0, 1000, ['leader'], ['zk2'])]);
  vi.advanceTimersByTime(0);
  expect(cuts).toEqual([]);
});
