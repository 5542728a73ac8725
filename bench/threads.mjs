// Cost and gain of `clientThreads`, by number of I/O threads, in interleaved slices: CPU time of the core's thread and
// of the whole process per operation, watch event, new session and ping; how long 1,000 TLS handshakes block the
// core's thread. New sessions are compared with Apache's server, if installed. Linux only: it reads /proc.
//
//   node bench/threads.mjs [--threads 0,1,2] [--rounds 5] [--secs 3] [--only REGEX] [--node /path/to/node]
//
//   --threads   more than 1 needs Node.js 22.12 or later for the server (`--node`)
//   --rounds    slices of each server and row; the medians are printed
//   --secs      duration of a slice
//   --only      rows whose name matches, those of measure/threads.mjs
//   --node      Node.js executable of the servers
//
// Rows with more sessions than `ulimit -Hn` allows are skipped with a message.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { apacheEngine, freePort, Server } from './engine.mjs';
import { BENCH_DIRECTORY, buildLoadGenerator } from './load-generator.mjs';
import { makeCertificates, THREAD_ROWS } from './measure/threads.mjs';
import { killAll } from './processes.mjs';
import { formatProjection } from './projection.mjs';
import { median } from './report.mjs';

const { values } = parseArgs({
  options: {
    threads: { type: 'string', default: '0,1' },
    rounds: { type: 'string', default: '5' },
    secs: { type: 'string', default: '3' },
    only: { type: 'string', default: '.' },
    node: { type: 'string', default: process.execPath },
  },
});
const MEERKAT = fileURLToPath(new URL('../packages/cli/bin/meerkat.js', import.meta.url));
const METER = new URL('cpu-turn-meter.mjs', import.meta.url).href;
/** Descriptors of a server other than those of its connections. */
const OTHER_DESCRIPTORS = 500;
const only = new RegExp(values.only, 'i');
const rounds = Number(values.rounds);
const secs = Number(values.secs);

const startedMs = performance.now();
const progress = (text) =>
  console.error(`${((performance.now() - startedMs) / 1000).toFixed(0).padStart(5)} s  ${text}`);

mkdirSync(BENCH_DIRECTORY, { recursive: true });
const directory = mkdtempSync(join(BENCH_DIRECTORY, 'threads-'));
process.on('exit', () => {
  killAll();
  rmSync(directory, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

const descriptorsMax = Number(/Max open files\s+\d+\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 0);
let starts = 0;
/** Label of Apache's server, in place of the number of threads. */
const APACHE = 'Apache';

/** @param row requirements of the server: `settings`, `isMetered`, `hasSecurePort` */
async function startServer(threads, row) {
  const node = [values.node, ...(row.isMetered === true ? ['--import', METER] : [])];
  const engine =
    threads === APACHE ? apacheEngine() : { name: 'meerkat', command: [...node, MEERKAT, 'server', '{cfg}'] };
  const home = join(directory, `${starts++}`);
  const settings = { ...(threads === APACHE ? {} : { clientThreads: threads }), ...row.settings };
  if (row.hasSecurePort === true) settings.secureClientPort = await freePort();
  const server = new Server(engine, home, settings);
  const meterFile = join(directory, `turn-${starts}`);
  await server.start({ MEERKAT_LOG_LEVEL: 'error', TURN_METER_FILE: meterFile });
  return Object.assign(server, { threads, meterFile });
}

await buildLoadGenerator(progress);
const certificates = await makeCertificates(directory);
const projected = [];
for (const makeRow of THREAD_ROWS) {
  const row = makeRow({ secs, certificates });
  if (!only.test(row.title)) continue;
  if ((row.connections ?? 0) + OTHER_DESCRIPTORS > descriptorsMax) {
    console.log(`\n${row.title}: left out, a process has ${descriptorsMax} descriptors at most here`);
    continue;
  }
  const counts = values.threads.split(',').map(Number);
  const variants = row.isBesideApache === true && apacheEngine() !== null ? [...counts, APACHE] : counts;
  const found = new Map(variants.map((threads) => [threads, []]));
  const turn = async (server, round) => {
    progress(`${row.title}, ${nameOf(server.threads)}, ${round < 0 ? 'to warm up' : `${round + 1} of ${rounds}`}`);
    const figures = await row.measure(server);
    if (round >= 0) found.get(server.threads).push(figures);
  };
  if (row.isOnce === true) {
    // Memory is measured on a fresh server.
    for (const threads of variants) {
      const server = await startServer(threads, row);
      await turn(server, rounds - 1);
      await server.destroy();
    }
  } else {
    const servers = [];
    for (const threads of variants) servers.push(await startServer(threads, row));
    for (let round = -1; round < rounds; round++) for (const server of servers) await turn(server, round);
    for (const server of servers) await server.destroy();
  }
  const columns = Object.keys(found.get(counts[0])[0]);
  const middle = (threads, name) => median(found.get(threads).map((figures) => figures[name]));
  console.log(`\n| ${row.title} | ${columns.join(' | ')} |`);
  console.log(`| --- | ${columns.map(() => '--:').join(' | ')} |`);
  for (const threads of variants) {
    const cells = columns.map((name) =>
      threads === APACHE && name.startsWith('core') ? '–' : rounded(middle(threads, name)),
    );
    console.log(`| ${nameOf(threads)} | ${cells.join(' | ')} |`);
  }
  const [core, whole] = ['core', 'process'].map((of) => columns.find((name) => name.startsWith(`${of}, µs`)));
  if (row.isProjected === true && counts.includes(1)) {
    const without = counts.includes(0) ? middle(0, whole) : undefined;
    projected.push({ title: row.title, without, core: middle(1, core), process: middle(1, whole) });
  }
}
if (projected.length > 0) console.log(`\n${formatProjection(projected)}\n\n◆: the core's thread is the limit.`);

function nameOf(threads) {
  return threads === APACHE ? APACHE : `${threads} ${threads === 1 ? 'thread' : 'threads'}`;
}

function rounded(value) {
  return value.toFixed(value >= 1000 ? 0 : value >= 100 ? 0 : value >= 10 ? 1 : 2);
}
