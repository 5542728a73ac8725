// One request in flight: the median latency, in microseconds.
import { fileURLToPath } from 'node:url';
import { BARE_NOTE, LIKE_A_READ, startBareServer } from '../bare-server.mjs';
import { zkload } from '../load-generator.mjs';
import { locked } from '../measure-lock.mjs';
import { run } from '../processes.mjs';

const FSYNC = fileURLToPath(new URL('../fsync.mjs', import.meta.url));
const LONE = { conns: 1, depth: 1, warmup: 0.1 };

/** Rows of a single read: compared with Apache's server, and with a Node.js server that only handles frames. */
export async function measureReadLatency(servers, { alternations, seconds }) {
  const bare = await startBareServer();
  const figures = { apache: [], meerkat: [], bare: [] };
  const turns = [
    ...servers.map((server) => ({
      name: server.engine.name,
      measure: () => zkload('load', server, { ...LONE, read: 100, size: 1024, secs: seconds }),
    })),
    { name: 'bare', measure: () => zkload('echo', bare, { ...LONE, ...LIKE_A_READ, secs: seconds }) },
  ];
  await alternate(turns, alternations, figures);
  bare.child.kill();
  const title = 'one read in flight, 1 KiB, p50';
  const rows = [{ title, unit: 'µs', reference: figures.apache, meerkat: figures.meerkat }];
  rows.push({
    title: `${title}, beside a bare Node.js server`,
    unit: 'µs',
    referenceNote: BARE_NOTE,
    reference: figures.bare,
    meerkat: figures.meerkat,
    must: { ratioMax: 1.2 },
  });
  return rows;
}

export async function measureWriteLatency(servers, { alternations, seconds }, directory) {
  const figures = { apache: [], meerkat: [] };
  const turns = servers.map((server) => ({
    name: server.engine.name,
    measure: () => zkload('load', server, { ...LONE, read: 0, size: 1024, secs: seconds }),
  }));
  await alternate(turns, alternations, figures);
  const lines = await locked(() => run(process.execPath, [FSYNC, `${directory}/fsync.dat`, '1', '1024', '1']));
  const synced = lines
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .find(({ mode }) => mode === 'sync');
  return [
    {
      title: `one durable write in flight, 1 KiB, p50 (a write and its fdatasync alone: ${synced.p50_us} µs)`,
      unit: 'µs',
      reference: figures.apache,
      meerkat: figures.meerkat,
      must: { ratioMax: 1 },
      aim: { valueMax: 250 },
    },
  ];
}

async function alternate(turns, alternations, figures) {
  for (let i = 0; i < alternations; i++) {
    for (const { name, measure } of i % 2 === 0 ? turns : turns.toReversed()) {
      const { lat_us } = await locked(measure);
      figures[name].push(lat_us.all.p50);
    }
  }
}
