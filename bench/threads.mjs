// What `clientThreads` costs and saves: the processor time of the core's thread and of the whole process for each operation, by
// number of I/O threads, in interleaved slices. Linux only: it reads /proc.
//
//   node bench/threads.mjs [--threads 0,1,2] [--rounds 5] [--secs 3] [--node /path/to/node]
//
// More than one thread needs Node.js 22.12 or later for the server (`--node`).
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { BENCH_DIRECTORY, buildLoadGenerator, zkload } from './load-generator.mjs';
import { median } from './report.mjs';

const { values } = parseArgs({
  options: {
    threads: { type: 'string', default: '0,1' },
    rounds: { type: 'string', default: '5' },
    secs: { type: 'string', default: '3' },
    node: { type: 'string', default: process.execPath },
  },
});
const MEERKAT = fileURLToPath(new URL('../packages/cli/bin/meerkat.js', import.meta.url));
const WORKLOADS = {
  '300 sessions × 2, 90 % reads of 1 KiB': { conns: 300, depth: 2, read: 90 },
  '32 sessions × 64, reads of 1 KiB': { conns: 32, depth: 64, read: 100 },
  '32 sessions × 64, writes of 1 KiB': { conns: 32, depth: 64, read: 0 },
  'one read in flight': { conns: 1, depth: 1, read: 100 },
};

/** Seconds of processor time of the core's thread, and of all threads. */
function processorTime(pid) {
  const seconds = (thread) => {
    try {
      return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e9;
    } catch {
      return 0;
    }
  };
  const all = readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + seconds(thread), 0);
  return { core: seconds(pid), all };
}

async function startServer(threads) {
  mkdirSync(BENCH_DIRECTORY, { recursive: true });
  const directory = mkdtempSync(join(BENCH_DIRECTORY, 'threads-'));
  const configuration = join(directory, 'zoo.cfg');
  const keys = { dataDir: join(directory, 'data'), clientPort: 0, clientPortAddress: '127.0.0.1', maxClientCnxns: 0 };
  const lines = Object.entries({ ...keys, clientThreads: threads, 'admin.enableServer': false });
  writeFileSync(configuration, lines.map(([key, value]) => `${key}=${value}\n`).join(''));
  const child = spawn(values.node, [MEERKAT, 'server', configuration], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, MEERKAT_LOG_LEVEL: 'error' },
  });
  const port = await new Promise((resolve, reject) => {
    let text = '';
    child.stdout.on('data', (chunk) => {
      text += chunk;
      const found = /serves clients on \S+:(\d+)/.exec(text);
      if (found !== null) resolve(Number(found[1]));
    });
    child.once('exit', () => reject(new Error(`the server with ${threads} threads has ended:\n${text}`)));
  });
  const stop = () => {
    child.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  };
  return { threads, port, pid: child.pid, stop };
}

async function slice(server, workload, secs) {
  const before = processorTime(server.pid);
  const result = await zkload('load', server, { ...workload, size: 1024, warmup: 0, secs });
  const after = processorTime(server.pid);
  const cost = (kind) => ((after[kind] - before[kind]) / result.ops) * 1e6;
  const { p50, p99 } = result.lat_us.all;
  return { core: cost('core'), all: cost('all'), perSecond: result.ops_per_s, p50, p99 };
}

await buildLoadGenerator((text) => console.error(text));
const servers = [];
try {
  for (const threads of values.threads.split(',')) servers.push(await startServer(Number(threads)));
  console.log(
    '| work | threads | core, µs an operation | process, µs an operation | operations/s | p50, µs | p99, µs |',
  );
  console.log('| --- | --: | --: | --: | --: | --: | --: |');
  for (const [name, workload] of Object.entries(WORKLOADS)) {
    const slices = new Map(servers.map((server) => [server, []]));
    for (const server of servers) await slice(server, workload, 2);
    for (let round = 0; round < Number(values.rounds); round++) {
      for (const server of servers) slices.get(server).push(await slice(server, workload, Number(values.secs)));
    }
    for (const [server, all] of slices) {
      const middle = (key, digits) => median(all.map((one) => one[key])).toFixed(digits);
      const figures = [middle('core', 2), middle('all', 2), middle('perSecond', 0), middle('p50', 0), middle('p99', 0)];
      console.log(`| ${[name, server.threads, ...figures].join(' | ')} |`);
    }
  }
} finally {
  for (const server of servers) server.stop();
}
