// How clients of two servers are affected when the third is killed, and when it returns after a million txns.
import { setTimeout as sleep } from 'node:timers/promises';
import { startZkload, zkload } from '../../load-generator.mjs';
import { locked } from '../../measure-lock.mjs';
import { formatValue, median } from '../../report.mjs';

/** Longer than any trial; a trial stops its loads itself. */
const LOAD = { conns: 2, size: 100, warmup: 1, secs: 600 };
/** A client at each of the two servers, with one write in flight. */
const WRITER = { ...LOAD, read: 0, depth: 1, root: '/zkothers-w' };
/** An open loop of a thousand reads a second: unpaced readers would starve the writers. */
const READER = { ...LOAD, read: 100, depth: 64, rate: 1000, root: '/zkothers-r' };
/** Set-up and the warm-up of LOAD, before the measurement starts. */
const LEAD_MS = 1700;
const WATCHED_MS = 3000;
/** Time for snapshots triggered by the million txns to finish. */
const CALM_MS = 5000;

/** Reported figures of the clients: latencies and throughput. */
const WAITS = [
  { name: 'longest wait of a write', unit: 'ms', figure: ({ writes }) => writes.lat_us.all.max / 1000 },
  { name: 'p99 of a write', unit: 'ms', figure: ({ writes }) => writes.lat_us.all.p99 / 1000 },
  { name: 'longest wait of a read', unit: 'ms', figure: ({ reads }) => reads.lat_us.all.max / 1000 },
  { name: 'p99 of a read', unit: 'ms', figure: ({ reads }) => reads.lat_us.all.p99 / 1000 },
];
const THROUGHPUT = { name: 'writes per second', unit: '', figure: ({ writes }) => writes.ops_per_s };

/** Rows of a follower's death, compared with a period of the same length without it. */
export async function measureFollowerDeath(ensembles, { pairs }) {
  const before = { apache: [], meerkat: [] };
  const during = { apache: [], meerkat: [] };
  for (let pair = 0; pair < pairs; pair++) {
    for (const ensemble of pair % 2 === 0 ? ensembles : ensembles.toReversed()) {
      const { name } = ensemble.engine;
      const follower = await ensemble.follower();
      before[name].push(await locked(() => watchOthers(ensemble.without(follower), () => sleep(WATCHED_MS))));
      during[name].push(
        await locked(() =>
          watchOthers(ensemble.without(follower), async () => {
            await sleep(WATCHED_MS / 6);
            await follower.kill();
            await sleep((WATCHED_MS * 5) / 6);
          }),
        ),
      );
      await follower.start();
    }
  }
  return rowsOf('a follower is killed', WAITS, before, during);
}

/** Rows of a follower that returns after `txnsAway` txns. */
export async function measureCatchUp(ensembles, { txnsAway }, progress) {
  const before = { apache: [], meerkat: [] };
  const during = { apache: [], meerkat: [] };
  const elapsed = { apache: [], meerkat: [] };
  for (const ensemble of ensembles) {
    const { name } = ensemble.engine;
    const follower = await ensemble.follower();
    await follower.stop();
    const others = ensemble.without(follower);
    progress(`${name}: ${txnsAway} txns without a follower`);
    const fill = { count: txnsAway, size: 100, conns: 16, depth: 32, root: '/zkaway' };
    await locked(() => zkload('fill', others, fill));
    await sleep(CALM_MS);
    progress(`${name}: the follower comes back`);
    before[name].push(await locked(() => watchOthers(others, () => sleep(CALM_MS))));
    during[name].push(await locked(() => watchOthers(others, async () => elapsed[name].push(await follower.start()))));
    await zkload('verify', { port: follower.port }, fill);
  }
  const title = `a follower comes back after ${txnsAway.toLocaleString('en-US')} txns of 100 B`;
  const row = { title: `${title}: from its start until it serves`, unit: 'ms' };
  return [
    { ...row, reference: elapsed.apache, meerkat: elapsed.meerkat },
    ...rowsOf(title, [THROUGHPUT, ...WAITS], before, during),
  ];
}

/** Figures of a writer and a reader at each of the other servers while `happen` runs. */
async function watchOthers(others, happen) {
  const writer = startZkload('load', others, WRITER);
  const reader = startZkload('load', others, READER);
  await sleep(LEAD_MS);
  await happen();
  const [writes, reads] = await Promise.all([writer.end(), reader.end()]);
  return { writes, reads };
}

function rowsOf(title, kinds, before, during) {
  return kinds.map(({ name, unit, figure }) => {
    const undisturbed = Object.entries({ Apache: before.apache, Meerkat: before.meerkat })
      .filter(([, runs]) => runs.length > 0)
      .map(([engine, runs]) => `${engine} ${formatValue(median(runs.map(figure)), unit)}`)
      .join(', ');
    return {
      title: `${title}: ${name} at the others (undisturbed: ${undisturbed})`,
      unit,
      reference: during.apache.map(figure),
      meerkat: during.meerkat.map(figure),
    };
  });
}
