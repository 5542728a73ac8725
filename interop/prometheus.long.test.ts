import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { guardOrphan } from './harness/orphan-guard.ts';
import { describeWith } from './harness/peers.ts';
import { Op, RawClient } from './harness/raw-client.ts';
import { OPEN_ACL, record } from './harness/record-builder.ts';
import { freePort, ServerProcess } from './harness/server-process.ts';

const DEPLOY = fileURLToPath(new URL('../deploy', import.meta.url));
const PROVIDER = 'org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider';

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
}

/** Metric names of a standalone server used by ZooKeeper dashboards and alerts (including Grafana's 10465). */
const READ_BY_DASHBOARDS = `avg_latency max_latency min_latency packets_received packets_sent num_alive_connections
  outstanding_requests uptime znode_count ephemerals_count watch_count approximate_data_size global_sessions local_sessions
  open_file_descriptor_count max_file_descriptor_count connection_drop_probability last_client_response_size
  max_client_response_size min_client_response_size outstanding_tls_handshake bytes_received_count connection_request_count
  connection_rejected connection_drop_count connection_revalidate_count revalidate_count sessionless_connections_expired
  stale_sessions_expired unrecoverable_error_count digest_mismatches_count looking_count diff_count snap_count commit_count
  proposal_count learner_proposal_received_count learner_commit_received_count quit_leading_due_to_disloyal_voter
  request_commit_queued prep_processor_request_queued sync_processor_request_queued outstanding_changes_queued
  outstanding_changes_removed request_throttle_wait_count stale_requests_dropped large_requests_rejected
  response_packet_cache_hits response_packet_cache_misses response_packet_get_children_cache_hits
  response_packet_get_children_cache_misses ensemble_auth_success ensemble_auth_fail ensemble_auth_skip tls_handshake_exceeded
  unsuccessful_handshake add_dead_watcher_stall_time dead_watchers_queued dead_watchers_cleared fsynctime snapshottime dbinittime
  startup_snap_load_time startup_txns_loaded election_time leader_unavailable_time follower_sync_time connection_token_deficit
  node_created_watch_count node_deleted_watch_count node_changed_watch_count node_children_watch_count prep_processor_queue_size
  prep_process_time sync_processor_queue_size sync_process_time read_commit_proc_req_queued write_commit_proc_req_queued
  commit_commit_proc_req_queued read_commit_proc_issued write_commit_proc_issued requests_in_session_queue
  pending_session_queue_size reads_after_write_in_session_queue reads_issued_from_session_queue session_queues_drained
  time_waiting_empty_pool_in_commit_processor_read_ms write_batch_time_in_commit_processor
  concurrent_request_processing_in_commit_processor commit_process_time readlatency updatelatency propagation_latency
  proposal_latency proposal_ack_creation_latency quorum_ack_latency commit_propagation_latency om_proposal_process_time_ms
  om_commit_process_time_ms prep_processor_queue_time_ms close_session_prep_time sync_processor_queue_flush_time_ms
  read_commitproc_time_ms write_commitproc_time_ms local_write_committed_time_ms server_write_committed_time_ms
  read_final_proc_time_ms write_final_proc_time_ms dead_watchers_cleaner_latency jvm_pause_time_ms read_per_namespace
  write_per_namespace process_cpu_seconds_total process_resident_memory_bytes process_start_time_seconds process_open_fds
  process_max_fds jvm_memory_bytes_used jvm_memory_bytes_max`.split(/\s+/);

describeWith(['prometheus'], 'Prometheus', () => {
  let server: ServerProcess;
  let directory: string;
  let prometheus: ChildProcess;
  let url: string;
  let metricsUrl: string;

  beforeAll(async () => {
    const metricsPort = await freePort();
    metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`;
    server = await ServerProcess.start('meerkat', {
      hasAdmin: true,
      config: { 'metricsProvider.className': PROVIDER, 'metricsProvider.httpPort': metricsPort },
    });
    const client = await RawClient.connect(server.port);
    // A namespace that is not a valid metric name.
    await client.demand(Op.create, record().ustring('/a "b" \\ c').buffer('x').acls(OPEN_ACL).int(0).build());
    await client.demand(Op.getData, record().ustring('/a "b" \\ c').bool(true).build());
    await client.close();
    directory = mkdtempSync(join(tmpdir(), 'interop-prometheus-'));
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    const scrape = `  - job_name: meerkat\n    static_configs:\n      - targets: ['127.0.0.1:${metricsPort}']\n`;
    const intervals = 'global:\n  scrape_interval: 1s\n  evaluation_interval: 1s\n';
    const rules = `rule_files: ['${join(DEPLOY, 'prometheus/alerts.yml')}']\n`;
    writeFileSync(join(directory, 'p.yml'), `${intervals}${rules}scrape_configs:\n${scrape}`);
    prometheus = spawn(
      'prometheus',
      [
        `--config.file=${directory}/p.yml`,
        `--storage.tsdb.path=${directory}/data`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: 'ignore' },
    );
    const release = guardOrphan(prometheus.pid, directory);
    prometheus.once('exit', release);
  });

  afterAll(async () => {
    const ended = new Promise((resolve) => prometheus.once('exit', resolve));
    prometheus.kill('SIGKILL');
    await ended;
    await server.dispose();
    rmSync(directory, { recursive: true, force: true });
  });

  async function ask(expression: string): Promise<readonly { readonly value: readonly [number, string] }[]> {
    const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expression)}`);
    const { status, data, error } = (await answer.json()) as {
      status: string;
      error?: string;
      data: { result: readonly { readonly value: readonly [number, string] }[] };
    };
    expect(status, `${expression}: ${error}`).toBe('success');
    return data.result;
  }

  test("accepts the page, except for warnings about Apache's names", async () => {
    const text = await (await fetch(metricsUrl)).text();
    const { status, stderr, stdout } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
    // 3: names that do not follow today's conventions, such as counters without _total.
    expect([0, 3], stderr).toContain(status);
    const own = `${stdout}${stderr}`.split('\n').filter((line) => line.startsWith('meerkat_'));
    expect(own).toEqual([]);
    for (const name of READ_BY_DASHBOARDS) expect.soft(text, name).toMatch(new RegExp(`^# TYPE ${name} `, 'm'));
    expect(text).toContain('key="a \\"b\\" \\\\ c"');
    expect(await (await fetch(`http://127.0.0.1:${server.adminPort}/metrics`)).text()).toContain(
      '# TYPE znode_count gauge',
    );
  });

  test('scrapes the server, and finds samples', async () => {
    const value = async (expression: string): Promise<number> =>
      Number((await ask(expression).catch(() => []))[0]?.value[1] ?? Number.NaN);
    await expect.poll(() => value('up{job="meerkat"}'), { timeout: 60_000, interval: 200 }).toBe(1);
    await expect.poll(() => value('scrape_samples_scraped'), { timeout: 60_000, interval: 200 }).toBeGreaterThan(300);
    await expect.poll(() => value('znode_count'), { timeout: 60_000, interval: 200 }).toBe(6);
    expect((await ask('readlatency{quantile="0.5"}')).length).toBe(1);
    expect(
      await value('histogram_quantile(0.99, meerkat_request_duration_seconds_bucket{op="get_data"})'),
    ).toBeGreaterThan(0);
    expect(await ask('ALERTS{alertstate="firing"}')).toEqual([]);
  });

  test('accepts the alert rules, which fire when they should', () => {
    execFileSync('promtool', ['check', 'rules', join(DEPLOY, 'prometheus/alerts.yml')]);
    execFileSync('promtool', ['test', 'rules', join(DEPLOY, 'prometheus/alerts.test.yml')]);
  });

  test('has every metric used by the rules and the dashboard', async () => {
    const dashboard = JSON.parse(readFileSync(join(DEPLOY, 'grafana/meerkat.json'), 'utf8')) as Dashboard;
    expect(dashboard.panels.length).toBeGreaterThan(20);
    const text = await (await fetch(metricsUrl)).text();
    const families = new Set([...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name = '']) => name));
    // Only reported by a leader, a server with TLS, or Prometheus itself.
    const elsewhere = new Set(['synced_followers', 'quorum_size', 'ssl_certificate_days_left', 'up']);
    const rules = readFileSync(join(DEPLOY, 'prometheus/alerts.yml'), 'utf8').matchAll(/expr: (.*)/g);
    const expressions = [...rules].map(([, expression = '']) => expression);
    for (const { targets } of dashboard.panels) {
      for (const { expr } of targets) {
        const asked = expr
          .replaceAll('$job', 'meerkat')
          .replaceAll('$instance', '.*')
          .replaceAll('$__rate_interval', '1m');
        await ask(asked);
        expressions.push(expr);
      }
    }
    const words =
      /\b(?:and|on|or|unless|by|sum|max|rate|increase|histogram_quantile|group_right|le|op|job|instance|key|role|area)\b/g;
    for (const expression of expressions) {
      const bare = expression.replaceAll(/\{[^}]*\}|\[[^\]]*\]|"[^"]*"|'[^']*'/g, '').replaceAll(words, '');
      for (const [name] of bare.matchAll(/\b[a-z][a-z_]{3,}\b/g)) {
        const family = name.replace(/_(?:bucket|sum|count)$/, '');
        const isKnown = families.has(name) || families.has(family) || elsewhere.has(name);
        expect.soft(isKnown, `${name} in ${expression}`).toBe(true);
      }
    }
  });
});
