// Sessions that only ping, equally many at each server; together more than one process can have connections. Of 20,000
// descriptors a server of an ensemble leaves 14,900 for clients.
import { zkload } from '../../load-generator.mjs';
import { locked } from '../../measure-lock.mjs';

/** Requested session timeout in milliseconds; pings are sent at a third of it. */
const SESSION = { timeout: 30_000, inflight: 64 };

export async function measureIdleSessions(ensembles, { idleSessions, idleSeconds }) {
  const found = { apache: [], meerkat: [] };
  for (const ensemble of ensembles)
    found[ensemble.engine.name].push(await locked(() => hold(ensemble, idleSessions, idleSeconds)));
  const row = (title, unit, figureOf) => ({
    title: `${idleSessions.toLocaleString('en-US')} idle sessions over three servers: ${title}`,
    unit,
    reference: found.apache.map(figureOf),
    meerkat: found.meerkat.map(figureOf),
  });
  return [
    row('processor time of all servers, per ping', 'µs', ({ cpuSeconds, pings }) => (cpuSeconds / pings) * 1e6),
    row('reply to a ping, p99 at the slowest server', 'ms', ({ pingP99Ms }) => pingP99Ms),
    row('memory of all servers, per session', 'KiB', ({ grownMb }) => (grownMb * 1024) / idleSessions),
    row('sessions created per second', '/s', ({ createdPerSecond }) => createdPerSecond),
  ];
}

/**
 * One load generator per server, because its connections are limited too.
 *
 * @param secs duration of the pings
 */
async function hold({ servers }, sessions, secs) {
  const count = Math.ceil(sessions / servers.length);
  const runs = await Promise.all(servers.map((server) => zkload('sessions', server, { ...SESSION, count, secs })));
  const sum = (figureOf) => runs.reduce((total, run) => total + figureOf(run), 0);
  return {
    pings: sum(({ pings }) => pings),
    cpuSeconds: sum(({ cpu_hold_s }) => cpu_hold_s),
    pingP99Ms: Math.max(...runs.map(({ lat_us }) => lat_us.ping.p99 / 1000)),
    grownMb: sum(({ rss_before_mb, rss_after_mb }) => rss_after_mb - rss_before_mb),
    createdPerSecond: sum(({ connects_per_s }) => connects_per_s),
  };
}
