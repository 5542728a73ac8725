// A znode with 1,000 watchers, spread over the servers, is set: the time until the last of them is notified.
import { fileURLToPath } from 'node:url';
import { BARE_NOTE, startProgram } from '../../bare-server.mjs';
import { zkload } from '../../load-generator.mjs';
import { locked } from '../../measure-lock.mjs';

const BARE = fileURLToPath(new URL('../../bare-fan-server.mjs', import.meta.url));
const FAN = { watchers: 1000, rounds: 40, 'warm-rounds': 10 };

/** Rows compared with Apache's ensemble, and with a Node.js process that only writes to 1,000 sockets. */
export async function measureWatchers(ensembles, { pairs }) {
  const bare = await startProgram(BARE);
  const figures = { apache: [], meerkat: [], bare: [] };
  const turns = [
    ...ensembles.map((ensemble) => ({ name: ensemble.engine.name, measure: () => zkload('watchfan', ensemble, FAN) })),
    { name: 'bare', measure: () => zkload('fan', bare, FAN) },
  ];
  for (let pair = 0; pair < pairs; pair++) {
    for (const { name, measure } of pair % 2 === 0 ? turns : turns.toReversed()) {
      const { lat_us } = await locked(measure);
      figures[name].push(lat_us.send_to_last.p50 / 1000);
    }
  }
  bare.child.kill();
  const title = '1,000 watchers of one znode: from the write to the last event, p50';
  return [
    {
      title,
      unit: 'ms',
      reference: figures.apache,
      meerkat: figures.meerkat,
      must: { valueMax: 10 },
      aim: { valueMax: 7 },
    },
    {
      title: `${title}, beside a bare Node.js process`,
      unit: 'ms',
      referenceNote: BARE_NOTE,
      reference: figures.bare,
      meerkat: figures.meerkat,
    },
  ];
}
