// Compares our recipes with those of kazoo and Curator, against one running server: each library in its own process,
// one of them active while the sessions of the rest only ping, in alternating slices.
import { connect } from 'node:net';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { formatClientTable } from '../clients/table.mjs';
import { Server } from '../engine.mjs';
import { locked } from '../measure-lock.mjs';
import { findLibraries } from '../recipes/libraries.mjs';
import { figuresOf, parsePackets, parseSlice, rowsOf } from '../recipes/slices.mjs';
import { WorkerProcess } from '../recipes/worker-process.mjs';
import { RECIPE_WORKLOADS } from '../recipes/workloads.mjs';
import { median } from '../report.mjs';

const AMOUNTS = {
  quick: { rounds: 2, seconds: 1, settleSeconds: 0.2, warmUpSeconds: 1 },
  full: { rounds: 5, seconds: 3, settleSeconds: 0.5, warmUpSeconds: 6 },
};

/**
 * @param options `engine`: the server to measure against; `only`: workloads whose title matches; `isQuick`: a rough
 *   result; `rounds`: slices of each library per workload
 * @returns a Markdown table, and notes on the run
 */
export async function measureRecipes({ engine, only, isQuick, rounds }, directory, progress) {
  const amounts = { ...(isQuick ? AMOUNTS.quick : AMOUNTS.full), ...(rounds === undefined ? {} : { rounds }) };
  const workloads = RECIPE_WORKLOADS.filter(({ title }) => only.test(title));
  if (workloads.length === 0) throw new Error(`none of: ${RECIPE_WORKLOADS.map(({ title }) => title).join('; ')}`);
  const libraries = await findLibraries(directory, progress);
  const server = new Server(engine, join(directory, engine.name), { maxSessionTimeout: 60_000 });
  await server.start();
  const workers = Object.entries(libraries).map(([name, command]) => new WorkerProcess(name, command, server.port));

  const rows = [];
  for (const workload of workloads) {
    progress(`${workload.title}: warming up`);
    const slices = await locked(() => measureInTurns(server, workers, workload, amounts, progress));
    rows.push(...rowsOf(workload, slices));
    progress(`${workload.title}: ${describe(workload, slices)}`);
  }
  for (const worker of workers) await worker.end();
  await server.destroy();
  return `${formatClientTable(rows, Object.keys(libraries))}\n\n${describeRun(engine, amounts)}`;
}

/** Figures by library name; the order is reversed after each round. */
async function measureInTurns(server, workers, workload, amounts, progress) {
  const { rounds, seconds, settleSeconds, warmUpSeconds } = amounts;
  // Warms up the JIT compilers, and creates the sessions.
  for (const worker of workers) await measureSlice(server, worker, workload, warmUpSeconds, 0);
  const figures = Object.fromEntries(workers.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    progress(`${workload.title}: round ${round + 1} of ${rounds}`);
    for (const worker of round % 2 === 0 ? workers : workers.toReversed()) {
      figures[worker.name].push(await measureSlice(server, worker, workload, seconds, settleSeconds));
    }
  }
  return figures;
}

let sliceCount = 0;

async function measureSlice(server, worker, { kind, participants }, seconds, settleSeconds) {
  // A separate path, so that nothing is left over from the previous slice.
  await worker.ask('start', kind, `/${worker.name.toLowerCase()}-${sliceCount++}`, participants);
  await sleep(settleSeconds * 1000);
  const [before] = await Promise.all([readPackets(server), worker.ask('mark')]);
  await sleep(seconds * 1000);
  const [after, answer] = await Promise.all([readPackets(server), worker.ask('read')]);
  await worker.ask('stop');
  return figuresOf(parseSlice(answer), before, after);
}

async function readPackets(server) {
  const socket = connect(server.port, '127.0.0.1');
  socket.end('mntr');
  let answer = '';
  for await (const chunk of socket) answer += chunk;
  return parsePackets(answer);
}

function describe({ cycle }, slices) {
  const medians = Object.entries(slices).map(
    ([name, figures]) => `${name} ${median(figures.map(({ perSecond }) => perSecond)).toFixed(0)}`,
  );
  return `${medians.join(', ')} ${cycle.many} per second`;
}

function describeRun(engine, amounts) {
  const processors = cpus();
  const load = `load average over the last 15 minutes ${loadavg()[2].toFixed(1)}`;
  return `Node.js ${process.version}, ${processors.length} × ${processors[0].model}; server: ${engine.name}; ${amounts.rounds} rounds of ${amounts.seconds} s a library; ${load}.`;
}
