// Saturated servers: operations per second of server CPU time, the figure that other load affects least.
import { BARE_NOTE, LIKE_A_READ, startBareServer } from '../bare-server.mjs';
import { zkload } from '../load-generator.mjs';
import { locked } from '../measure-lock.mjs';

const SATURATED = { conns: 32, depth: 16 };
const KIB = { size: 1024, ...SATURATED };
const SMALL = { size: 100, root: '/zkl100', ...SATURATED };

export const WORKLOADS = [
  { title: 'reads, 1 KiB', mode: 'load', options: { read: 100, ...KIB }, must: 5, aim: 7 },
  { title: 'reads, 100 B', mode: 'load', options: { read: 100, ...SMALL }, must: 7, aim: 9 },
  { title: 'durable writes, 1 KiB', mode: 'load', options: { read: 0, ...KIB }, must: 3, aim: 3 },
  { title: 'durable writes, 100 B', mode: 'load', options: { read: 0, ...SMALL }, must: 2.5, aim: 4 },
  { title: '90 % reads, 1 KiB', mode: 'load', options: { read: 90, ...KIB } },
  { title: '50 % reads, 1 KiB', mode: 'load', options: { read: 50, ...KIB } },
  { title: '90 % reads, 100 B', mode: 'load', options: { read: 90, ...SMALL } },
  { title: '50 % reads, 100 B', mode: 'load', options: { read: 50, ...SMALL } },
  {
    title: 'watch fan-out, 1,000 watchers, events',
    mode: 'watchfan',
    options: { watchers: 1000, rounds: 40, 'warm-rounds': 10 },
    must: 2,
    aim: 4,
  },
  {
    title: 'multi of 10 setData, 100 B',
    mode: 'load',
    options: { mix: 'multi=1', 'multi-k': 10, size: 100, conns: 16, depth: 4 },
    must: 3,
    aim: 4,
  },
  {
    title: 'create and delete, 100 B',
    mode: 'load',
    options: { mix: 'createdelete=1', size: 100, ...SATURATED },
    must: 4,
    aim: 4,
  },
];

/** Mixed load that warms up the JIT compilers of the JVM and of Node.js. */
export function warmUp(server, seconds) {
  const mix = 'getData=6,setData=4,createdelete=1,exists=1,getChildren=1,multi=1';
  return locked(() => zkload('load', server, { warmup: 0, secs: seconds, root: '/warm', conns: 32, depth: 8, mix }));
}

/** Reads of 1 KiB compared with a server that only parses frames: the upper bound of Node.js itself. */
export async function measureCeiling(servers, { pairs, seconds }) {
  const bare = await startBareServer();
  const meerkat = servers.find(({ engine }) => engine.name === 'meerkat');
  const figures = { bare: [], meerkat: [] };
  const slice = { ...SATURATED, warmup: 0.7, secs: seconds };
  const turns = [
    ['bare', () => zkload('echo', bare, { ...LIKE_A_READ, ...slice })],
    ['meerkat', () => zkload('load', meerkat, { read: 100, size: 1024, ...slice })],
  ];
  for (let pair = 0; pair < pairs; pair++) {
    for (const [name, measure] of pair % 2 === 0 ? turns : turns.toReversed()) {
      figures[name].push((await locked(measure)).ops_per_cpu_s);
    }
  }
  bare.child.kill();
  return {
    title: 'reads, 1 KiB (per server-CPU-second), beside a bare Node.js server',
    unit: '',
    referenceNote: BARE_NOTE,
    reference: figures.bare,
    meerkat: figures.meerkat,
  };
}

/** Runs one workload on each server alternately and returns a row of operations per server-CPU-second. */
export async function measureThroughput(workload, servers, { pairs, seconds }) {
  const figures = { apache: [], meerkat: [] };
  const slice = workload.mode === 'load' ? { warmup: 0.7, secs: seconds } : {};
  for (let pair = 0; pair < pairs; pair++) {
    for (const server of pair % 2 === 0 ? servers : servers.toReversed()) {
      const result = await locked(() => zkload(workload.mode, server, { ...workload.options, ...slice }));
      figures[server.engine.name].push(result.ops_per_cpu_s);
    }
  }
  return {
    title: `${workload.title} (per server-CPU-second)`,
    unit: '',
    reference: figures.apache,
    meerkat: figures.meerkat,
    must: workload.must && { ratioMin: workload.must },
    aim: workload.aim && { ratioMin: workload.aim },
  };
}
