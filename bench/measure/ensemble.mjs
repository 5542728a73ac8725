// Three of our servers against three of Apache's: both ensembles run throughout, and one of them is under load.
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { Ensemble } from '../ensemble.mjs';
import { formatTable, median, ratioOf } from '../report.mjs';
import { measureIdleSessions } from './ensemble/idle-sessions.mjs';
import { measureHandOver, measureLeaderDeath, measureLeaderDeathWithZnodes } from './ensemble/leader-change.mjs';
import { measureLoneWrite } from './ensemble/lone-write.mjs';
import { measureCatchUp, measureFollowerDeath } from './ensemble/others.mjs';
import { ENSEMBLE_WORKLOADS, measureEnsembleThroughput } from './ensemble/throughput.mjs';
import { measureWatchers } from './ensemble/watchers.mjs';
import { warmUp } from './throughput.mjs';

const AMOUNTS = {
  quick: {
    pairs: 2,
    seconds: 1,
    warmUp: 3,
    alternations: 3,
    sliceSeconds: 0.3,
    kills: 1,
    killsWithZnodes: 1,
    znodes: 20_000,
    txnsAway: 100_000,
    idleSessions: 3000,
    idleSeconds: 12,
  },
  full: {
    pairs: 3,
    seconds: 2,
    warmUp: 12,
    alternations: 10,
    sliceSeconds: 0.5,
    kills: 5,
    killsWithZnodes: 3,
    znodes: 100_000,
    txnsAway: 1_000_000,
    idleSessions: 42_000,
    idleSeconds: 25,
  },
};

/** In this order: measurements that fill the servers or change their roles come last. */
const MEASUREMENTS = [
  ...ENSEMBLE_WORKLOADS.map((workload) => ({
    name: workload.title,
    measure: async (ensembles, amounts) => [await measureEnsembleThroughput(workload, ensembles, amounts)],
  })),
  { name: 'one write in flight', measure: measureLoneWrite },
  { name: 'watchers', measure: measureWatchers },
  { name: 'idle sessions', measure: measureIdleSessions },
  { name: 'leader killed', measure: measureLeaderDeath },
  { name: 'hand-over', measure: measureHandOver },
  { name: 'leader of many znodes killed', measure: measureLeaderDeathWithZnodes },
  { name: 'follower killed', measure: measureFollowerDeath },
  { name: 'catch-up', measure: measureCatchUp },
];

/**
 * @param options `engines`: Apache's, if installed, and ours; `only`: measurements whose name matches;
 *   `isQuick`: a rough result; `given`: amounts that override those above
 * @returns a Markdown table, and notes on the run
 */
export async function measureEnsemble({ engines, only, isQuick, given }, directory, progress) {
  const amounts = { ...(isQuick ? AMOUNTS.quick : AMOUNTS.full), ...given };
  const measurements = MEASUREMENTS.filter(({ name }) => only.test(name));
  if (measurements.length === 0) throw new Error(`none of: ${MEASUREMENTS.map(({ name }) => name).join('; ')}`);
  const ensembles = engines.map((engine) => new Ensemble(engine, join(directory, engine.name)));
  for (const ensemble of ensembles) {
    progress(`${ensemble.engine.name}: three servers start and warm up`);
    await ensemble.start();
    await warmUp(ensemble, amounts.warmUp);
  }
  const rows = [];
  for (const { name, measure } of measurements) {
    progress(name);
    for (const row of await measure(ensembles, amounts, progress)) {
      rows.push(row);
      const ratio = ratioOf(row)?.median.toFixed(2) ?? '–';
      progress(`${row.title}: ${median(row.meerkat).toFixed(1)} ${row.unit}, ratio ${ratio}`);
    }
  }
  for (const ensemble of ensembles) await ensemble.destroy();
  return `${formatTable(rows, 'Apache ZooKeeper')}\n\n${describeRun(engines, amounts)}`;
}

function describeRun(engines, { pairs, seconds, alternations }) {
  const processors = cpus();
  const slices = `three servers each; ${pairs} pairs of ${seconds} s, ${alternations} alternations of one write`;
  const incumbent = engines.some(({ name }) => name === 'apache') ? 'Apache with -Xmx4g' : 'Apache not installed';
  const load = `load average over the last 15 minutes ${loadavg()[2].toFixed(1)}`;
  return `Node.js ${process.version}, ${processors.length} × ${processors[0].model}; ${slices}; ${incumbent}; ${load}.`;
}
