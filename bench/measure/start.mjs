// From the start of the process to the first answered request, on an empty directory.
import { join } from 'node:path';
import { Server } from '../engine.mjs';
import { locked } from '../measure-lock.mjs';

export async function measureStart(engines, directory, { starts }) {
  const figures = { apache: [], meerkat: [] };
  for (let i = 0; i < starts; i++) {
    for (const engine of i % 2 === 0 ? engines : engines.toReversed()) {
      const server = new Server(engine, join(directory, `start-${engine.name}-${i}`));
      figures[engine.name].push(await locked(() => server.start()));
      await server.destroy();
    }
  }
  return [
    {
      title: 'start to the first answer',
      unit: 'ms',
      reference: figures.apache,
      meerkat: figures.meerkat,
      must: { valueMax: 300 },
      aim: { valueMax: 150 },
    },
  ];
}
