// `npm run bench -- metrics`: the cost of metrics: alternating slices of a server with and without metrics, per second
// of CPU time of all threads; the share of counting in a CPU profile, which does not depend on other load; and the CPU
// time of one scrape.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, Server } from '../engine.mjs';
import { zkload } from '../load-generator.mjs';
import { locked } from '../measure-lock.mjs';
import { median } from '../report.mjs';
import { warmUp } from './throughput.mjs';

const SHARE = new URL('../meter-share.mjs', import.meta.url).href;
const WITHOUT = new URL('../no-meters.mjs', import.meta.url).href;
const WORKLOADS = [
  { title: 'reads of 1 KiB', read: 100 },
  { title: 'writes of 1 KiB', read: 0 },
];
const LOAD = { size: 1024, conns: 32, depth: 16, warmup: 0.2 };
/** Longer than the 250 ms for which the server caches a scrape. */
const SCRAPE_MS = 300;
const SCRAPES = 20;
const TICK_MS = 10;

/** @returns Markdown */
export async function measureMetrics({ engine, pairs, seconds, starts }, directory, progress) {
  const rows = WORKLOADS.map((workload) => ({ ...workload, counting: [], nothing: [], shares: [] }));
  const core = [];
  const all = [];
  // JIT decisions differ between processes.
  for (let start = 1; start <= starts; start++) {
    const counting = await open(engine, join(directory, 'counting'), {});
    const nothing = await open(engine, join(directory, 'nothing'), { NODE_OPTIONS: `--import ${WITHOUT}` });
    for (const row of rows) {
      const slice = { ...LOAD, read: row.read, secs: seconds };
      const turns = [
        ['counting', counting],
        ['nothing', nothing],
      ];
      for (let pair = 0; pair < pairs; pair++) {
        progress(`${row.title}, start ${start} of ${starts}, pair ${pair + 1} of ${pairs}`);
        for (const [name, server] of pair % 2 === 0 ? turns : turns.toReversed()) {
          row[name].push((await locked(() => zkload('load', server, slice))).ops_per_cpu_s);
        }
      }
    }
    progress(`scrapes, start ${start} of ${starts}`);
    await scrape(counting);
    const idle = await cpuWhile(counting, () => new Promise((resolve) => setTimeout(resolve, SCRAPES * SCRAPE_MS)));
    const scraped = await cpuWhile(counting, () => scrape(counting));
    core.push((scraped.coreMs - idle.coreMs) / SCRAPES);
    all.push((scraped.allMs - idle.allMs) / SCRAPES);
    await counting.destroy();
    await nothing.destroy();
    progress(`a profile, start ${start} of ${starts}`);
    const shareFile = join(directory, 'share');
    const profiled = await open(engine, join(directory, 'profiled'), {
      NODE_OPTIONS: `--import ${SHARE}`,
      METER_SHARE_FILE: shareFile,
    });
    await shareSince(profiled, shareFile);
    for (const { read, shares } of rows) {
      await locked(() => zkload('load', profiled, { ...LOAD, read, secs: 4 * seconds }));
      shares.push(await shareSince(profiled, shareFile));
    }
    await profiled.destroy();
  }
  const scrapeMs = `${median(core).toFixed(1)} ms of the core's thread, ${median(all).toFixed(1)} ms of all`;
  return [
    '| what metrics cost | |',
    '| --- | ---: |',
    ...rows.map(({ title, counting, nothing }) => {
      const ratios = counting.map((count, i) => count / nothing[i]).toSorted((a, b) => a - b);
      const quarters = [0.25, 0.5, 0.75].map((part) => ratios[Math.floor(part * ratios.length)].toFixed(3));
      return `| ${title} per second of processor time, counted to not counted: quarters | ${quarters.join(', ')} |`;
    }),
    ...rows.map(({ title, shares }) => {
      return `| ${title}: counting, of the time of the core's thread | ${(100 * median(shares)).toFixed(2)} % |`;
    }),
    `| processor time of a scrape | ${scrapeMs} |`,
  ].join('\n');
}

async function open(engine, directory, environment) {
  const server = new Server(engine, directory, {
    'metricsProvider.className': 'org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider',
    'metricsProvider.httpPort': await freePort(),
  });
  await server.start(environment);
  await warmUp(server, 4);
  return server;
}

/** The share of counting since the last call. */
async function shareSince({ pid }, file) {
  rmSync(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  while (!existsSync(file) || !readFileSync(file, 'utf8').endsWith('\n')) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return Number(readFileSync(file, 'utf8'));
}

async function scrape(server) {
  for (let i = 0; i < SCRAPES; i++) {
    const answer = await fetch(`http://127.0.0.1:${server.settings['metricsProvider.httpPort']}/metrics`);
    if (!(await answer.text()).includes('\nreadlatency_count ')) throw new Error('the server gives no metrics');
    await new Promise((resolve) => setTimeout(resolve, SCRAPE_MS));
  }
}

async function cpuWhile({ pid }, work) {
  const before = cpuMs(pid);
  await work();
  const after = cpuMs(pid);
  return { coreMs: after.coreMs - before.coreMs, allMs: after.allMs - before.allMs };
}

/** CPU time of a process: of its first thread, and of all threads. */
function cpuMs(pid) {
  const coreMs = Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return { coreMs, allMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS };
}
