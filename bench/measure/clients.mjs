// Compares our client with the others on npm, against one running server: each in its own process, one of them active
// while the rest only ping, in alternating short slices.
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ClientProcess } from '../clients/client-process.mjs';
import { heapRows } from '../clients/heap-rows.mjs';
import { installRivals } from '../clients/rivals.mjs';
import { formatClientTable } from '../clients/table.mjs';
import { WORKLOAD_TITLES } from '../clients/workloads.mjs';
import { Server } from '../engine.mjs';
import { locked } from '../measure-lock.mjs';
import { placeAnywhere, placeApart } from '../placement.mjs';
import { run } from '../processes.mjs';
import { median } from '../report.mjs';

const HEAP = fileURLToPath(new URL('../clients/heap.mjs', import.meta.url));
const OURS = 'meerkat';
const DEPTHS = [1, 16, 256];

const AMOUNTS = {
  quick: { rounds: 2, seconds: 0.5, loneRounds: 4, loneSeconds: 0.3, warmUpSeconds: 0.5, operations: 200_000 },
  full: { rounds: 6, seconds: 1, loneRounds: 16, loneSeconds: 0.5, warmUpSeconds: 2, operations: 1_000_000 },
};

/**
 * @param options `engine`: the server to measure against; `only`: workloads and "heap" whose title matches; `isQuick`:
 *   a rough result; `rounds`: slices of each client per workload and depth
 * @returns a Markdown table, and notes on the run
 */
export async function measureClients({ engine, only, isQuick, rounds }, directory, progress) {
  const amounts = { ...(isQuick ? AMOUNTS.quick : AMOUNTS.full), ...(rounds === undefined ? {} : { rounds }) };
  const titles = WORKLOAD_TITLES.filter((title) => only.test(title));
  const rivals = titles.length === 0 ? { names: [] } : await installRivals(progress);
  const server = new Server(engine, join(directory, engine.name));
  await server.start();

  const rows = titles.length === 0 ? [] : await measureSpeed(server, titles, rivals, amounts, progress);
  const heap = only.test('heap') ? await measureHeap(server, amounts, progress) : { rows: [], series: [] };
  await server.destroy();
  const table = formatClientTable([...rows, ...heap.rows], [...rivals.names, OURS]);
  const series = heap.series.map((line) => `- ${line}\n`).join('');
  return `${table}\n\n${series}${series === '' ? '' : '\n'}${describeRun(engine, amounts)}`;
}

async function measureHeap(server, { operations }, progress) {
  progress(`heap over ${operations} operations`);
  const output = await locked(() =>
    run(process.execPath, ['--expose-gc', HEAP, String(server.port), String(operations)]),
  );
  return heapRows(JSON.parse(output));
}

async function measureSpeed(server, titles, rivals, amounts, progress) {
  const clients = [...rivals.names, OURS].map(
    (name, i) => new ClientProcess(name, { port: server.port, root: `/c${i}`, directory: rivals.directory ?? '' }),
  );
  for (const client of clients) await client.ready();
  progress('warming up');
  await locked(() => warmUp(clients, titles, amounts));
  const rows = [];
  for (const title of titles) {
    for (const depth of DEPTHS) {
      // All rounds run under one hold of the lock, so that the slices of a round see the same machine.
      const measure = () => measureInTurns(clients, { title, depth }, amounts);
      const figures = await locked(depth === 1 ? () => apart(server, clients, measure) : measure);
      rows.push(...speedRows(title, depth, figures));
      const medians = clients.map(({ name }) => `${name} ${Math.round(medianOf(figures[name], 'perSecond'))}`);
      progress(`${title}, depth ${depth}: ${medians.join(', ')} per second`);
    }
  }
  for (const client of clients) await client.end();
  return rows;
}

/** With one operation in flight, the latency depends mostly on whether client and server share a CPU. */
async function apart(server, clients, measure) {
  const pids = clients.map(({ pid }) => pid);
  await placeApart(server.pid, pids);
  try {
    return await measure();
  } finally {
    await placeAnywhere([server.pid, ...pids]);
  }
}

/** The JIT compilers of client and server warm up first, so that no client pays for another's warm-up. */
async function warmUp(clients, titles, { warmUpSeconds }) {
  for (let round = 0; round < 2; round++) {
    for (const client of clients) {
      for (const title of titles) {
        await client.slice({ title, depth: 64, warmUpSeconds: 0, seconds: warmUpSeconds / 2 });
      }
    }
  }
}

/** Slices by client name; the order is reversed after each round. */
async function measureInTurns(clients, { title, depth }, amounts) {
  const [rounds, seconds] = depth === 1 ? [amounts.loneRounds, amounts.loneSeconds] : [amounts.rounds, amounts.seconds];
  const figures = Object.fromEntries(clients.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const client of round % 2 === 0 ? clients : clients.toReversed()) {
      figures[client.name].push(await client.slice({ title, depth, warmUpSeconds: 0.2, seconds }));
    }
  }
  return figures;
}

/** @param figures results of runClosedLoop, by client */
function speedRows(title, depth, figures) {
  const of = (name) =>
    Object.fromEntries(Object.entries(figures).map(([client, slices]) => [client, pick(slices, name)]));
  const at = `${title}, depth ${depth}`;
  const must = depth === 256 ? { ratioMin: 2 } : depth === 1 ? { ratioMin: 1 } : undefined;
  const rows = [
    { title: `${at}: per second`, unit: '', isMoreBetter: true, figures: of('perSecond'), must },
    { title: `${at}: per client-CPU-second`, unit: '', isMoreBetter: true, figures: of('perCpuSecond'), must },
  ];
  if (depth === 1) {
    rows.push({ title: `${at}: p50`, unit: 'µs', figures: of('p50Us'), must: { ratioMax: 1 } });
    rows.push({ title: `${at}: p99`, unit: 'µs', figures: of('p99Us') });
  }
  return rows;
}

const pick = (slices, name) => slices.map((slice) => slice[name]);
const medianOf = (slices, name) => median(pick(slices, name));

function describeRun(engine, amounts) {
  const processors = cpus();
  const slices = `${amounts.rounds} rounds of ${amounts.seconds} s a client, ${amounts.loneRounds} of ${amounts.loneSeconds} s with one operation in flight`;
  const load = `load average over the last 15 minutes ${loadavg()[2].toFixed(1)}`;
  return `Node.js ${process.version}, ${processors.length} × ${processors[0].model}; server: ${engine.name}; ${slices}; ${load}.`;
}
