// `npm run bench`: compares Meerkat with Apache ZooKeeper in alternating short slices; prints one Markdown table.
//
//   npm run bench -- [--quick] [--only REGEX] [--pairs N] [--meerkat COMMAND]
//
//   npm run bench -- client [--quick] [--only REGEX] [--pairs N] [--meerkat COMMAND] [--server apache]
//
//   npm run bench -- ensemble [--quick] [--only REGEX] [--pairs N] [--warm-up SECONDS] [--meerkat COMMAND]
//
//   npm run bench -- recipes [--quick] [--only REGEX] [--pairs N] [--meerkat COMMAND] [--server apache]
//
//   npm run bench -- attacks [--quick] [--only REGEX] [--meerkat COMMAND] [--server apache] [--first]
//
//   npm run bench -- tls|audit|metrics [--quick] [--pairs N] [--meerkat COMMAND]
//
//   audit        cost of the audit log (measure/audit.mjs)
//   metrics      cost of metrics and of a scrape (measure/metrics.mjs)
//   tls          cost of TLS, of handshakes and of handshake floods (measure/tls.mjs)
//   attacks      latency of a well-behaved client during attacks (listed in attacks/attacks.mjs)
//   ensemble     three servers against three of Apache's (measurements: measure/ensemble.mjs)
//   client       our client against the other clients on npm (measure/clients.mjs)
//   recipes      our recipes against kazoo's and Curator's (measure/recipes.mjs; workloads: recipes/workloads.mjs)
//   --server     the server for clients and recipes: meerkat or apache
//   --first      attacks: server and client get priority over all other processes but the attacker; needs root
//   --quick      fewer and shorter slices, 100,000 znodes: takes one or two minutes; for a rough result only
//   --only       measurements whose name matches: those of WORKLOADS in measure/throughput.mjs, "one read in flight",
//                "one write in flight", "start", "embedded", "many znodes"; for instance --only '^reads|start'
//   --pairs      slices of each engine per workload (4; ensembles 3)
//   --warm-up    ensembles: seconds of load before each is measured (12; with --quick 3)
//   --meerkat    another program to measure instead of Meerkat, with {cfg} for the path of its zoo.cfg
//
// Ratios are medians over pairs of slices of the same run; figures of different runs are not comparable. Progress goes
// to stderr. Data is kept below ZKBENCH_DIR (default: a folder in the temporary directory) until the end.
import { mkdirSync, rmSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { apacheEngine, meerkatEngine, Server } from './engine.mjs';
import { BENCH_DIRECTORY, buildLoadGenerator } from './load-generator.mjs';
import { measureAttacks } from './measure/attacks.mjs';
import { measureAudit } from './measure/audit.mjs';
import { measureClients } from './measure/clients.mjs';
import { measureEmbedded } from './measure/embedded.mjs';
import { measureEnsemble } from './measure/ensemble.mjs';
import { measureReadLatency, measureWriteLatency } from './measure/latency.mjs';
import { measureManyZnodes } from './measure/many-znodes.mjs';
import { measureMetrics } from './measure/metrics.mjs';
import { measureRecipes } from './measure/recipes.mjs';
import { measureStart } from './measure/start.mjs';
import { measureCeiling, measureThroughput, WORKLOADS, warmUp } from './measure/throughput.mjs';
import { measureTls } from './measure/tls.mjs';
import { killAll } from './processes.mjs';
import { formatTable, median, ratioOf } from './report.mjs';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '.' },
    pairs: { type: 'string' },
    'warm-up': { type: 'string' },
    meerkat: { type: 'string' },
    server: { type: 'string', default: 'meerkat' },
    first: { type: 'boolean', default: false },
  },
});
const only = new RegExp(options.only, 'i');
const amounts = options.quick
  ? { pairs: 2, seconds: 1, warmUp: 3, alternations: 6, sliceSeconds: 0.3, starts: 3, restarts: 1, znodes: 100_000 }
  : {
      pairs: 4,
      seconds: 2,
      warmUp: 12,
      alternations: 20,
      sliceSeconds: 0.5,
      starts: 7,
      restarts: 3,
      znodes: 1_000_000,
    };
if (options.pairs !== undefined) amounts.pairs = Number(options.pairs);

const directory = join(BENCH_DIRECTORY, `run-${process.pid}`);
const startedMs = performance.now();
const progress = (text) =>
  console.error(`${((performance.now() - startedMs) / 1000).toFixed(0).padStart(5)} s  ${text}`);

process.on('exit', () => {
  killAll();
  rmSync(directory, { recursive: true, force: true });
});
process.on('SIGINT', () => process.exit(130));
process.on('SIGTERM', () => process.exit(143));

try {
  await main();
} catch (error) {
  console.error(error.message);
  process.exit(1);
}

async function main() {
  mkdirSync(directory, { recursive: true });
  await buildLoadGenerator(progress);
  if (positionals[0] === 'attacks') return console.log(await measureAttacks(clientOptions(), directory, progress));
  if (positionals[0] === 'client') return console.log(await measureClients(clientOptions(), directory, progress));
  if (positionals[0] === 'recipes') return console.log(await measureRecipes(clientOptions(), directory, progress));
  if (positionals[0] === 'tls') {
    const { pairs, seconds } = amounts;
    return console.log(
      await measureTls({ engine: meerkatEngine(options.meerkat), pairs, seconds }, directory, progress),
    );
  }
  if (positionals[0] === 'metrics') {
    const { alternations, sliceSeconds } = amounts;
    const pairs = options.pairs === undefined ? alternations : Number(options.pairs);
    const engine = meerkatEngine(options.meerkat);
    const parts = { engine, pairs, seconds: sliceSeconds, starts: options.quick ? 1 : 3 };
    return console.log(await measureMetrics(parts, directory, progress));
  }
  if (positionals[0] === 'audit') {
    const { pairs, seconds } = amounts;
    return console.log(
      await measureAudit({ engine: meerkatEngine(options.meerkat), pairs, seconds }, directory, progress),
    );
  }
  const apache = apacheEngine();
  if (apache === null) progress('the package zookeeper is not installed: Meerkat is measured alone');
  const engines = [...(apache === null ? [] : [apache]), meerkatEngine(options.meerkat)];
  if (positionals[0] === 'ensemble') {
    const given = {
      ...(options.pairs === undefined ? {} : { pairs: Number(options.pairs) }),
      ...(options['warm-up'] === undefined ? {} : { warmUp: Number(options['warm-up']) }),
    };
    return console.log(await measureEnsemble({ engines, only, isQuick: options.quick, given }, directory, progress));
  }

  const rows = [];
  const add = (more) => {
    for (const row of more) {
      rows.push(row);
      const ratio = ratioOf(row)?.median.toFixed(2) ?? '–';
      progress(`${row.title}: ${median(row.meerkat).toFixed(1)} ${row.unit}, ratio ${ratio}`);
    }
  };

  await measureUnderLoad(engines, add);
  if (only.test('start')) add(await measureStart(engines, directory, amounts));
  if (only.test('embedded')) add(await measureEmbedded());
  if (only.test('many znodes')) add(await measureManyZnodes(engines, directory, amounts, progress));
  console.log(`${formatTable(rows, 'Apache ZooKeeper')}\n\n${describeRun(apache)}`);
}

function clientOptions() {
  const engine = options.server === 'apache' ? apacheEngine() : meerkatEngine(options.meerkat);
  if (engine === null) throw new Error('the package zookeeper is not installed: apt-get install zookeeper');
  const rounds = options.pairs === undefined ? undefined : Number(options.pairs);
  return { engine, only, isQuick: options.quick, isFirst: options.first, rounds };
}

/** Throughput and latency: both servers run throughout, one of them under load. */
async function measureUnderLoad(engines, add) {
  const workloads = WORKLOADS.filter(({ title }) => only.test(title));
  const wantsRead = only.test('one read in flight');
  const wantsWrite = only.test('one write in flight');
  if (workloads.length === 0 && !wantsRead && !wantsWrite) return;
  const servers = engines.map((engine) => new Server(engine, join(directory, engine.name)));
  for (const server of servers) {
    progress(`${server.engine.name}: warming up`);
    await server.start();
    await warmUp(server, amounts.warmUp);
  }
  for (const workload of workloads) add([await measureThroughput(workload, servers, amounts)]);
  if (workloads.some(({ title }) => title === 'reads, 1 KiB')) add([await measureCeiling(servers, amounts)]);
  const slices = { alternations: amounts.alternations, seconds: amounts.sliceSeconds };
  if (wantsRead) add(await measureReadLatency(servers, slices));
  if (wantsWrite) add(await measureWriteLatency(servers, slices, directory));
  for (const server of servers) await server.destroy();
}

function describeRun(apache) {
  const processors = cpus();
  const pairs = `${amounts.pairs} pairs of ${amounts.seconds} s, ${amounts.alternations} alternations of one request`;
  const incumbent = apache === null ? 'Apache not installed' : 'Apache with -Xmx4g';
  // The benchmark itself causes a load between one and the number of CPUs; a higher value means interference.
  const load = `load average over the last 15 minutes ${loadavg()[2].toFixed(1)}`;
  return `Node.js ${process.version}, ${processors.length} × ${processors[0].model}; ${pairs}; ${incumbent}; ${load}.`;
}
