// Expensive requests that one client can send to a server. Each attack first prepares its data, and then sends requests
// in a loop until it is stopped.
import { ADMIN_ATTACKS } from './admin-port.mjs';
import { CONNECTIONS } from './connections.mjs';
import { IDENTITIES } from './identities.mjs';
import { PATHS } from './paths.mjs';
import { createMany, ensure, flood, session } from './preparation.mjs';
import { READS } from './reads.mjs';
import { WATCHES } from './watches.mjs';
import { Bytes, frameOf, Op } from './wire.mjs';
import { WRITES } from './writes.mjs';

/**
 * `make` connects and prepares; `attack` sends requests until `isOver()`. `{ port, adminPort, scale }`: sizes are those
 * of the title times `scale`, which is 1 except in quick runs. `seconds`: minimum duration at full size.
 *
 * @typedef {{ name: string, seconds?: number, make(world: object): Promise<object>, attack(made: object, isOver: () => boolean): Promise<void> }} Attack
 */
export const ATTACKS = [
  {
    name: 'nothing',
    make: async () => ({}),
    attack: async (_made, isOver) => {
      while (!isOver()) await new Promise((resolve) => setTimeout(resolve, 20));
    },
  },
  ...READS,
  {
    name: 'end of sessions with 20,000 ephemerals',
    async make({ port, scale }) {
      const client = await session(port);
      await ensure(client, '/ends');
      return { port, parent: client, count: 20_000 * scale };
    },
    async attack({ port, count }, isOver) {
      while (!isOver()) {
        const client = await session(port);
        await createMany(client, '/ends', count, { flags: 1 }, isOver);
        await client.ask(Op.closeSession).catch(() => undefined);
        client.drop();
      }
    },
  },
  ...WATCHES,
  {
    name: 'pings',
    async make({ port }) {
      const client = await session(port);
      const frames = new Array(8000).fill(frameOf(Op.ping, new Bytes(), -2));
      return { client, frames: [Buffer.concat(frames)], together: frames.length, depth: 4 * frames.length };
    },
    attack: flood,
  },
  ...IDENTITIES,
  ...PATHS,
  ...WRITES,
  ...CONNECTIONS,
  ...ADMIN_ATTACKS,
];
