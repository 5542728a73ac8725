// The rows of `bench/threads.mjs`: each has a title, settings of its server, and a slice that returns figures by column
// name. "Core" is the thread of the core, "process" all threads.
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { zkload } from '../load-generator.mjs';

const TLS_LOAD = fileURLToPath(new URL('../tls/load.mjs', import.meta.url));
const HANDSHAKES = 1000;
const WATCHERS = 1000;
const TICKS_A_SECOND = 100;
/** Requested session timeout; pings are sent at a third of it. */
const SESSION_TIMEOUT_MS = 30_000;

const operations =
  (title, workload) =>
  ({ secs }) => ({
    title,
    isProjected: workload.conns > 1,
    async measure(server) {
      const { ops, ops_per_s, server_main_s, server_cpu_s, lat_us } = await zkload('load', server, {
        ...workload,
        size: 1024,
        warmup: 0.3,
        secs,
      });
      return {
        'core, µs/op': (server_main_s / ops) * 1e6,
        'process, µs/op': (server_cpu_s / ops) * 1e6,
        'ops/s': ops_per_s,
        'p50, µs': lat_us.all.p50,
        'p99, µs': lat_us.all.p99,
      };
    },
  });

/** The cost of an event includes reading again with a new watch. */
const fanOut = ({ secs }) => ({
  title: `a change told to ${WATCHERS} watchers`,
  isProjected: true,
  async measure(server) {
    const rounds = secs * 15;
    const found = await zkload('watchfan', server, { watchers: WATCHERS, rounds, 'warm-rounds': 5 });
    const { server_main_s, server_cpu_s, lat_us } = found;
    const events = WATCHERS * rounds;
    return {
      'core, µs/event': (server_main_s / events) * 1e6,
      'process, µs/event': (server_cpu_s / events) * 1e6,
      'to the last, p50, ms': lat_us.send_to_last.p50 / 1000,
      'p99, ms': lat_us.send_to_last.p99 / 1000,
    };
  },
});

const TLS_SETTINGS = ({ keyStore, trustStore }) => ({
  serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
  'ssl.keyStore.location': keyStore,
  'ssl.trustStore.location': trustStore,
  secureClientPortAddress: '127.0.0.1',
});

async function shakeHands(server, { client }) {
  const port = server.settings.secureClientPort;
  const job = { job: 'handshakes', port, tls: client, limit: HANDSHAKES, connections: 200, seconds: 120 };
  await promisify(execFile)(process.execPath, [TLS_LOAD, JSON.stringify(job)]);
}

const handshakes = ({ certificates }) => ({
  title: 'TLS handshakes with client certificates, RSA 2048, 200 at a time',
  hasSecurePort: true,
  isProjected: true,
  settings: TLS_SETTINGS(certificates),
  async measure(server) {
    const before = cpuSeconds(server.pid);
    const startedMs = performance.now();
    await shakeHands(server, certificates);
    const tookMs = performance.now() - startedMs;
    const after = cpuSeconds(server.pid);
    return {
      'core, µs/handshake': ((after.core - before.core) / HANDSHAKES) * 1e6,
      'process, µs/handshake': ((after.all - before.all) / HANDSHAKES) * 1e6,
      'handshakes/s': (HANDSHAKES / tookMs) * 1000,
    };
  },
});

/** Runs with a meter, which itself uses CPU time. */
const awayInHandshakes = ({ certificates }) => ({
  title: `${HANDSHAKES} such handshakes`,
  isMetered: true,
  hasSecurePort: true,
  settings: TLS_SETTINGS(certificates),
  async measure(server) {
    await longestTurn(server);
    await shakeHands(server, certificates);
    const { main, delay } = await longestTurn(server);
    return { 'the core away for at most, ms': delay, 'its longest turn, processor time, ms': main };
  },
});

const newSessions = ({ secs }) => ({
  title: 'new sessions, 32 at a time',
  isProjected: true,
  isBesideApache: true,
  async measure(server) {
    const count = secs * 1000;
    const found = await zkload('sessions', server, { count, secs: 0, inflight: 32, timeout: SESSION_TIMEOUT_MS });
    return {
      'core, µs/session': (found.main_connect_s / count) * 1e6,
      'process, µs/session': (found.cpu_connect_s / count) * 1e6,
      'sessions/s': found.connects_per_s,
      'p99, ms': found.lat_us.connect.p99 / 1000,
    };
  },
});

const idleSessions =
  (count) =>
  ({ secs }) => ({
    title: `${count} idle sessions`,
    isOnce: true,
    connections: count,
    async measure(server) {
      const hold = Math.max(12, secs * 8);
      const found = await zkload('sessions', server, { count, secs: hold, inflight: 64, timeout: SESSION_TIMEOUT_MS });
      return {
        'core, µs/ping': (found.main_hold_s / found.pings) * 1e6,
        'process, µs/ping': (found.cpu_hold_s / found.pings) * 1e6,
        'p99 of a ping, ms': found.lat_us.ping.p99 / 1000,
        'KiB/session': ((found.rss_after_mb - found.rss_before_mb) * 1024) / count,
        'sessions/s': found.connects_per_s,
      };
    },
  });

export const THREAD_ROWS = [
  operations('300 sessions × 2, 90 % reads of 1 KiB', { conns: 300, depth: 2, read: 90 }),
  operations('32 sessions × 64, reads of 1 KiB', { conns: 32, depth: 64, read: 100 }),
  operations('32 sessions × 64, writes of 1 KiB', { conns: 32, depth: 64, read: 0 }),
  operations('one read in flight', { conns: 1, depth: 1, read: 100 }),
  operations('one write in flight', { conns: 1, depth: 1, read: 0 }),
  fanOut,
  newSessions,
  handshakes,
  awayInHandshakes,
  idleSessions(10_000),
  idleSessions(18_000),
  idleSessions(50_000),
];

/** Files and options for TLS. */
export async function makeCertificates(directory) {
  const { CertificateAuthority } = await import('../../packages/server/dist/index.js');
  const authority = new CertificateAuthority();
  const keyStore = join(directory, 'server.pem');
  const trustStore = join(directory, 'ca.pem');
  mkdirSync(directory, { recursive: true });
  const names = ['IP:127.0.0.1', 'DNS:localhost'];
  writeFileSync(keyStore, authority.issue('server', { names, keyType: 'rsa' }).keyStore);
  writeFileSync(trustStore, authority.certificate);
  const { certificate: cert, key } = authority.issue('client');
  return { keyStore, trustStore, client: { ca: authority.certificate, cert, key } };
}

/** The maxima of `cpu-turn-meter.mjs` since the last call, in milliseconds. */
async function longestTurn({ pid, meterFile }) {
  process.kill(pid, 'SIGUSR2');
  await new Promise((resolve) => setTimeout(resolve, 300));
  return JSON.parse(readFileSync(meterFile, 'utf8'));
}

/** CPU time of a process, of its first thread and of all threads. */
function cpuSeconds(pid) {
  const core = Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e9;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return { core, all: (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND };
}
