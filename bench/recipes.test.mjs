import { expect, test } from 'vitest';
import { figuresOf, parsePackets, parseSlice, rowsOf } from './recipes/slices.mjs';

test("a worker's slice has cycles, a duration and optional latencies", () => {
  expect(parseSlice('3 1500000 10,30,20')).toEqual({ cycles: 3, seconds: 1.5, latenciesUs: [10, 30, 20] });
  expect(parseSlice('8 2000000 ')).toEqual({ cycles: 8, seconds: 2, latenciesUs: [] });
});

test('a slice in which nothing happened has no figures', () => {
  expect(() => parseSlice('0 2000000 ')).toThrow('without a cycle');
  expect(() => parseSlice('nonsense')).toThrow('without a cycle');
});

test('packets are parsed from a reply to mntr', () => {
  const answer = 'zk_version\t3.8.0\nzk_packets_received\t120\nzk_packets_sent\t130\nzk_znode_count\t5\n';
  expect(parsePackets(answer)).toEqual({ received: 120, sent: 130 });
  expect(() => parsePackets('This ZooKeeper instance is not currently serving requests\n')).toThrow('packets_received');
});

test('packets sent in excess of replies are watch events', () => {
  const slice = { cycles: 10, seconds: 2, latenciesUs: [3000, 1000, 2000] };
  const figures = figuresOf(slice, { received: 100, sent: 100 }, { received: 150, sent: 165 });
  expect(figures).toEqual({ perSecond: 5, requests: 5, events: 1.5, p50Ms: 2, p99Ms: 3 });
});

test('replies that cross slice boundaries do not make the event count negative', () => {
  const slice = { cycles: 10, seconds: 2, latenciesUs: [] };
  expect(figuresOf(slice, { received: 10, sent: 10 }, { received: 50, sent: 49 })).toEqual({
    perSecond: 5,
    requests: 4,
    events: 0,
  });
});

test('a workload has latency rows only when its cycles have a latency', () => {
  const workload = { title: 'lock', cycle: { one: 'hand-over', many: 'hand-overs' } };
  const slice = { perSecond: 100, requests: 4, events: 1 };
  expect(rowsOf(workload, { kazoo: [slice], meerkat: [slice] }).map(({ title }) => title)).toEqual([
    'lock: hand-overs per second',
    'lock: requests per hand-over',
    'lock: watch events per hand-over',
  ]);
  const rows = rowsOf(workload, { meerkat: [{ ...slice, p50Ms: 1, p99Ms: 2 }] });
  expect(rows).toHaveLength(5);
  expect(rows[0]).toEqual({
    title: 'lock: hand-overs per second',
    unit: '',
    isMoreBetter: true,
    figures: { meerkat: [100] },
  });
  expect(rows[2]).toMatchObject({ title: 'lock: release to acquire, p99', figures: { meerkat: [2] } });
});
