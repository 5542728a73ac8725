import type { ServerSample, ServersSample } from '../api/messages.ts';
import { askWithCertificate, NoAnswerError } from './four-letter-word.ts';
import type { MonitoredServer } from './options.ts';

/**
 * Polls the servers of a cluster every two seconds while there is a viewer, and keeps the samples of the last ten
 * minutes. Shared by all browsers.
 */
export class ServersMonitor {
  readonly #servers: readonly MonitoredServer[];
  readonly #listeners: Set<(sample: ServersSample) => void> = new Set();
  #history: ServersSample[] = [];
  #timer: NodeJS.Timeout | null = null;
  #isStopped = false;

  constructor(servers: readonly MonitoredServer[]) {
    this.#servers = servers;
  }

  /** Oldest first. */
  get history(): readonly ServersSample[] {
    return this.#history;
  }

  listen(listener: (sample: ServersSample) => void): Disposable {
    this.#listeners.add(listener);
    if (this.#timer === null) this.#arm(0);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #arm(delayMs: number): void {
    this.#timer = setTimeout(() => void this.#sample(), delayMs).unref();
  }

  async #sample(): Promise<void> {
    const startedMs = Date.now();
    const servers = withLags(await Promise.all(this.#servers.map((server) => readServer(server))));
    const sample = { atMs: startedMs, servers };
    this.#history = [...this.#history, sample].slice(-HISTORY_MAX);
    for (const listener of this.#listeners) listener(sample);
    this.#timer = null;
    if (this.#listeners.size > 0 && !this.#isStopped) this.#arm(EVERY_MS);
  }
}

const EVERY_MS = 2000;
const HISTORY_MAX = 300;
const ANSWER_MS = 3000;

async function readServer(server: MonitoredServer): Promise<ServerSample> {
  const refused: string[] = [];
  const ask = async (word: string) => {
    try {
      return await askWithCertificate(server, word, ANSWER_MS);
    } catch (error) {
      if (!(error instanceof NoAnswerError)) throw error;
      if (error.kind === 'not allowed') refused.push(word);
      return error;
    }
  };
  // Every server answers srvr; the others have to be allowed.
  const [srvr, mntr, conf] = await Promise.all([ask('srvr'), ask('mntr'), ask('conf')]);
  const metrics = mntr instanceof NoAnswerError ? {} : parseMetrics(mntr.text);
  const config = conf instanceof NoAnswerError ? {} : parseConfig(conf.text);
  if (srvr instanceof NoAnswerError) {
    const role = srvr.kind === 'not serving' ? 'looking' : null;
    return { ...NOTHING, name: server.name, role, problem: srvr.message, refused, metrics, config };
  }
  return { ...parseServer(srvr.text), name: server.name, metrics, config, refused, certificate: srvr.certificate };
}

/** Parses the answer to `srvr`, of our servers and Apache's. */
export function parseServer(text: string): ServerSample {
  const find = (pattern: RegExp): string | null => pattern.exec(text)?.[1] ?? null;
  const numberOf = (pattern: RegExp): number => Number(find(pattern) ?? 0);
  return {
    ...NOTHING,
    role: find(/^Mode: (.+)$/m),
    version: find(/^Zookeeper version: ([^,\s]+)/m),
    zxid: find(/^Zxid: (0x[0-9a-f]+)$/m),
    latencyAverageMs: numberOf(/^Latency min\/avg\/max: [\d.]+\/([\d.E-]+)\/[\d.]+$/m),
    latencyMaxMs: numberOf(/^Latency min\/avg\/max: [\d.]+\/[\d.E-]+\/([\d.]+)$/m),
    received: numberOf(/^Received: (\d+)$/m),
    connections: numberOf(/^Connections: (\d+)$/m),
    outstanding: numberOf(/^Outstanding: (\d+)$/m),
    znodes: numberOf(/^Node count: (\d+)$/m),
  };
}

const NOTHING: ServerSample = {
  name: '',
  role: null,
  problem: null,
  version: null,
  zxid: null,
  lag: null,
  latencyAverageMs: 0,
  latencyMaxMs: 0,
  received: 0,
  connections: 0,
  outstanding: 0,
  znodes: 0,
  metrics: {},
  config: {},
  certificate: null,
  refused: [],
};

/** The displayed fields of `mntr`; missing ones are left out. */
const METRICS: ReadonlySet<string> = new Set([
  'zk_avg_fsynctime',
  'zk_max_fsynctime',
  'zk_p99_fsynctime',
  'zk_cnt_fsynctime',
  'zk_avg_updatelatency',
  'zk_p99_updatelatency',
  'zk_avg_readlatency',
  'zk_p99_readlatency',
  'zk_avg_election_time',
  'zk_max_election_time',
  'zk_cnt_election_time',
  'zk_watch_count',
  'zk_ephemerals_count',
  'zk_approximate_data_size',
  'zk_open_file_descriptor_count',
  'zk_max_file_descriptor_count',
  'zk_global_sessions',
  'zk_uptime',
  'zk_synced_followers',
  'zk_followers',
  'zk_learners',
  'zk_synced_observers',
  'zk_pending_syncs',
  'zk_quorum_size',
  'zk_throttled_ops',
  'zk_last_client_response_size',
]);

function parseMetrics(text: string): Record<string, number> {
  const metrics: Record<string, number> = {};
  for (const line of text.split('\n')) {
    const [key = '', value = ''] = line.split('\t');
    if (METRICS.has(key) && value !== '' && Number.isFinite(Number(value))) metrics[key] = Number(value);
  }
  return metrics;
}

/** Parses the answer to `conf`. The members in it are also in the configuration of the ensemble. */
function parseConfig(text: string): Record<string, string> {
  const config: Record<string, string> = {};
  for (const line of text.split('\n')) {
    const at = line.indexOf('=');
    if (at > 0) config[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return config;
}

/** Txns behind the furthest server, within the same epoch. */
function withLags(servers: readonly ServerSample[]): ServerSample[] {
  const zxids = servers.map(({ zxid }) => (zxid === null ? null : BigInt(zxid)));
  const furthest = zxids.reduce<bigint>((most, zxid) => (zxid !== null && zxid > most ? zxid : most), 0n);
  return servers.map((server, i) => {
    const zxid = zxids[i];
    if (zxid === null || zxid === undefined || zxid >> 32n !== furthest >> 32n) return server;
    return { ...server, lag: Number(furthest - zxid) };
  });
}
