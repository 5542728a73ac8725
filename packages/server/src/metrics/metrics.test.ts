import { readFileSync } from 'node:fs';
import { Histogram, type TraceEvent } from '@meerkat/core';
import { expect, test } from 'vitest';
import { Metrics } from './metrics.ts';

const CLOCK = { monotonicMs: () => 0, wallMs: () => 0 };
const SLOW_MS = 1000;
const PEER = { ip: Uint8Array.of(10, 0, 0, 1), host: '10.0.0.1', port: 40_000 };

test('everything that is counted is shown', () => {
  const shown = ['catalogue.ts', 'exposition.ts'].map((file) => readFileSync(new URL(file, import.meta.url), 'utf8'));
  // Private fields are not among the keys.
  const counted = Object.keys(new Metrics(CLOCK, SLOW_MS));
  expect(counted.length).toBeGreaterThan(30);
  const hidden = counted.filter((name) => !new RegExp(`metrics\\.${name}\\b`).test(shown.join('')));
  expect(hidden, 'neither in catalogue.ts nor in exposition.ts').toEqual([]);
});

/** A server leads, follows and observes, and all happens that is counted. */
const EVENTS: readonly TraceEvent[] = [
  { kind: 'recovered', lastZxid: 1, znodes: 5, sessions: 0, txns: 1, snapshotMs: 1, replayMs: 1 },
  { kind: 'role-changed', role: 'looking', leader: null, reason: '' },
  { kind: 'role-changed', role: 'leading', leader: 1, reason: '' },
  { kind: 'learner-synchronizing', serverId: 2, mode: 'diff', from: 0, zxid: 1 },
  { kind: 'learner-synchronizing', serverId: 3, mode: 'snap', from: 0, zxid: 1 },
  { kind: 'epoch-established', epoch: 1, zxid: 1 },
  { kind: 'session-created', sessionId: 1n, timeoutMs: 1, remote: PEER },
  { kind: 'proposed', zxid: 2 },
  { kind: 'log-synced', txns: 1, bytes: 1, syncMs: SLOW_MS + 1 },
  { kind: 'committed', zxid: 2 },
  { kind: 'connection-closed', remote: PEER, sessionId: 1n, reason: 'closed by peer' },
  { kind: 'session-expired', sessionId: 1n, timeoutMs: 1 },
  { kind: 'quota-exceeded', path: '/a', limit: '', isHard: true },
  { kind: 'snapshot-written', file: '', bytes: 1, ms: 1 },
  { kind: 'snapshot-failed', file: '', error: new Error() },
  { kind: 'role-changed', role: 'looking', leader: null, reason: '' },
  { kind: 'role-changed', role: 'following', leader: 2, reason: '' },
  { kind: 'epoch-established', epoch: 2, zxid: 2 },
  { kind: 'committed', zxid: 3 },
  { kind: 'role-changed', role: 'looking', leader: null, reason: '' },
  { kind: 'role-changed', role: 'observing', leader: 2, reason: '' },
  { kind: 'epoch-established', epoch: 3, zxid: 3 },
  { kind: 'digest-mismatch', zxid: 3, expected: 0n, actual: 1n },
  { kind: 'failed', error: new Error() },
];

/** Counted where it happens. */
const COUNTED_ELSEWHERE = [
  'ensembleAnswers',
  'handshakesExceeded',
  'restore',
  'restoreErrors',
  'restoresRateLimited',
  'snapshotsRateLimited',
];

test('everything else is counted by an event', () => {
  const metrics = new Metrics(CLOCK, SLOW_MS);
  metrics.onBytesReceived(1);
  metrics.onPlainClient(PEER.ip);
  metrics.onPlainClient(Uint8Array.of(127, 0, 0, 1));
  metrics.onHandshakeFailed(true);
  for (const event of EVENTS) metrics.emit(event);
  const still = Object.entries(metrics).flatMap(([name, value]) => (isMoved(value) ? [] : [name]));
  expect(still.toSorted(), 'no event here moves it').toEqual(COUNTED_ELSEWHERE);
});

function isMoved(value: unknown): boolean {
  if (value instanceof Histogram) return value.count > 0;
  return value instanceof Map ? value.size > 0 : typeof value === 'number' && value > 0;
}
