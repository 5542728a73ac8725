// The leader stops under load: the longest time without an acknowledged write, over three clients, one at each server,
// with one write in flight each, that immediately try the next server when theirs is gone. After the leader's restart,
// every acknowledged write must be on every server.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { longestGap } from '../../gaps.mjs';
import { startZkload, zkload } from '../../load-generator.mjs';
import { locked } from '../../measure-lock.mjs';

/** Milliseconds for the clients to start before, and for a gap to show after. */
const LEAD_MS = 1500;
const WATCHED_MS = 3000;
/** Longer than any trial; a trial ends the load itself. */
const LOAD = { conns: 3, secs: 300 };

const DEATH_LIMITS = { must: { valueMax: 300 }, aim: { valueMax: 150 } };

export async function measureLeaderDeath(ensembles, { kills }, progress) {
  const figures = await measureGaps(ensembles, kills, (leader) => leader.kill(), progress);
  return rowsOf('gap without an acknowledged write, leader killed with -9', figures, DEATH_LIMITS);
}

/** The same with a larger tree: a server that rereads its directory before it serves takes longer. */
export async function measureLeaderDeathWithZnodes(ensembles, { killsWithZnodes, znodes }, progress) {
  for (const ensemble of ensembles) {
    progress(`${ensemble.engine.name}: creating ${znodes} znodes`);
    await locked(() => zkload('fill', ensemble, { count: znodes, size: 100, conns: 16, depth: 32, root: '/zkmore' }));
  }
  const figures = await measureGaps(ensembles, killsWithZnodes, (leader) => leader.kill(), progress);
  const more = `${znodes.toLocaleString('en-US')} znodes of 100 B more`;
  return rowsOf(`gap without an acknowledged write, leader killed with -9, ${more}`, figures, DEATH_LIMITS);
}

/** Our ensembles only: Apache's server has no leadership hand-over. */
export async function measureHandOver(ensembles, { kills }, progress) {
  const ours = ensembles.filter(({ engine }) => engine.name === 'meerkat');
  const figures = await measureGaps(ours, kills, (leader) => leader.stop(), progress);
  return rowsOf('gap without an acknowledged write, leader told to end with SIGTERM', figures, {
    must: { valueMax: 100 },
    aim: { valueMax: 50 },
  });
}

/** The ensembles take turns, trial by trial. */
async function measureGaps(ensembles, trials, endLeader, progress) {
  const figures = { apache: [], meerkat: [] };
  for (let trial = 0; trial < trials; trial++) {
    for (const ensemble of trial % 2 === 0 ? ensembles : ensembles.toReversed()) {
      const gapMs = await locked(() => measureGap(ensemble, endLeader));
      figures[ensemble.engine.name].push(gapMs);
      progress(`${ensemble.engine.name}: ${gapMs.toFixed(1)} ms without an acknowledged write`);
    }
  }
  return figures;
}

async function measureGap(ensemble, endLeader) {
  const leader = await ensemble.leader();
  const file = join(ensemble.directory, 'acknowledged');
  const load = startZkload('failover', ensemble, { ...LOAD, acks: file });
  await sleep(LEAD_MS);
  const from = Date.now() * 1000;
  await endLeader(leader);
  await ensemble.leader();
  await sleep(WATCHED_MS);
  const until = Date.now() * 1000;
  await leader.start();
  await load.end();
  const timesUs = readFileSync(file, 'utf8').trim().split('\n').map(Number);
  return longestGap(timesUs, { from, until }) / 1000;
}

function rowsOf(title, figures, limits) {
  const row = (what, summary) => ({
    title: `${title}: ${what} of ${figures.meerkat.length}`,
    unit: 'ms',
    reference: summary(figures.apache),
    meerkat: summary(figures.meerkat),
    ...limits,
  });
  return [row('median', (gaps) => gaps), row('worst', (gaps) => (gaps.length === 0 ? [] : [Math.max(...gaps)]))];
}
