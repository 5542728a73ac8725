import { describe, expect, test } from 'vitest';
import { Exposition } from '../metrics/exposition.ts';
import { LoopDelay } from '../metrics/loop-delay.ts';
import { Metrics } from '../metrics/metrics.ts';
import { FULL_VERSION } from '../version.ts';
import { CLOCK, NO_TLS, words } from './testing/asked-words.ts';
import { recorded } from './testing/recorded-answers.ts';
import { view } from './testing/server-views.ts';

/** Names that 3.8.0, which was recorded, does not have. */
const SINCE_3_9 = [
  ...['snapshot_error_count', 'snapshot_rate_limited_count', 'restore_error_count', 'restore_rate_limited_count'],
  ...['avg', 'min', 'max', 'cnt', 'sum'].map((part) => `${part}_restore_time`),
].map((name) => `zk_${name}`);

/** What has a label each, of which a fresh server has none. */
const SETS = `quota_count_limit_per_namespace quota_bytes_limit_per_namespace quota_count_usage_per_namespace
  quota_bytes_usage_per_namespace quota_exceeded_error_per_namespace read_per_namespace write_per_namespace
  learner_handler_qp_size learner_handler_qp_time_ms ack_latency`.split(/\s+/);

const OF_3_4 =
  `version server_state avg_latency max_latency min_latency packets_received packets_sent num_alive_connections
  outstanding_requests znode_count watch_count ephemerals_count approximate_data_size open_file_descriptor_count
  max_file_descriptor_count`.split(/\s+/);

describe("the text is that of Apache's server", () => {
  test('mntr has every name of a server on its own, those that came with 3.9 too, and no other', () => {
    const lines = words(view()).answer('mntr', null).split('\n').slice(0, -1);
    expect(lines[0]).toBe(`zk_version\t${FULL_VERSION}`);
    expect(lines[1]).toBe('zk_server_state\tstandalone');
    for (const line of lines) expect(line).toMatch(/^zk_\w+\t\S+/);
    const names = lines.map((line) => line.slice(0, line.indexOf('\t')));
    expect(names.toSorted()).toEqual([...recorded('fresh mntr-keys').trimEnd().split('\n'), ...SINCE_3_9].toSorted());
  });

  test('the page for Prometheus has every name of mntr, as a summary what mntr sums up, and no other of ZooKeeper', () => {
    const source = { view: view(), metrics: new Metrics(CLOCK, 1000), tls: NO_TLS.tls };
    const page = [...new Exposition(source, new LoopDelay(), false).format(0)].join('');
    const types = new Map([...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
    const keys = [...recorded('fresh mntr-keys').trimEnd().split('\n'), ...SINCE_3_9].map((key) => key.slice(3));
    const summaries = keys.flatMap((key) => (key.startsWith('cnt_') ? [key.slice(4)] : []));
    const others = keys.filter((key) => !summaries.some((name) => key.endsWith(`_${name}`)));
    for (const name of summaries) expect(types.get(name), name).toBe('summary');
    for (const name of others) {
      if (!/^(version|server_state)$/.test(name)) expect(types.get(name), name).toMatch(/^(gauge|counter)$/);
    }
    const known = new Set([...summaries, ...others]);
    const more = [...types.keys()].filter((name = '') => !known.has(name) && !name.startsWith('meerkat_'));
    expect(more.toSorted()).toEqual(SETS.toSorted());
  });

  test('mntr tells what collectors of the time of 3.4 look for in its first 4096 bytes', () => {
    const beginning = words(view()).answer('mntr', null).slice(0, 4096);
    for (const name of OF_3_4) expect(beginning).toContain(`zk_${name}\t`);
  });

  test('srst sets back what mntr counts', () => {
    const server = view();
    const answers = words(server);
    server.meters.reads.add(4000);
    server.meters.sentBytes = 10;
    expect(answers.answer('mntr', null)).toContain('zk_max_readlatency\t4\n');
    answers.answer('srst', null);
    expect(answers.answer('mntr', null)).toMatch(
      /zk_response_bytes\t0\n[\s\S]*zk_max_readlatency\t0\nzk_cnt_readlatency\t0\n/,
    );
    server.meters.reads.add(2000);
    const line = 'zk_avg_readlatency\t2.0\nzk_min_readlatency\t2\nzk_max_readlatency\t2\nzk_cnt_readlatency\t1\n';
    expect(answers.answer('mntr', null)).toContain(line);
    expect(server.meters.reads.count).toBe(2);
  });
});
