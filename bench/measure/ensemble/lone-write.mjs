// One client with one durable write in flight: the latency at the leader, and at a follower, which forwards it.
import { zkload } from '../../load-generator.mjs';
import { locked } from '../../measure-lock.mjs';

const LONE = { conns: 1, depth: 1, warmup: 0.1, read: 0, size: 1024 };

export async function measureLoneWrite(ensembles, { alternations, sliceSeconds }) {
  const rows = [];
  for (const role of ['leader', 'follower']) {
    const figures = { apache: [], meerkat: [] };
    for (let i = 0; i < alternations; i++) {
      for (const ensemble of i % 2 === 0 ? ensembles : ensembles.toReversed()) {
        const { port } = await ensemble[role]();
        const { lat_us } = await locked(() => zkload('load', { port }, { ...LONE, secs: sliceSeconds }));
        figures[ensemble.engine.name].push(lat_us.all.p50);
      }
    }
    rows.push({
      title: `one durable write in flight at the ${role}, 1 KiB, p50`,
      unit: 'µs',
      reference: figures.apache,
      meerkat: figures.meerkat,
    });
  }
  return rows;
}
