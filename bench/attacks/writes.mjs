// Attacks with writes that are large or fire many watches.
import { ensure, flood, session, watchersOf } from './preparation.mjs';
import { Bytes, FRAME_BYTES_MAX, frameOf, OPEN_ACL, Op } from './wire.mjs';

/** @type {import('./attacks.mjs').Attack[]} */
export const WRITES = [
  {
    name: 'multi, 1 MB of creates and deletes',
    // It pauses for fifteen seconds after each write.
    seconds: 60,
    async make({ port }) {
      const client = await session(port);
      await ensure(client, '/multi');
      const record = new Bytes();
      for (let i = 0; record.length < FRAME_BYTES_MAX - 200; i++) {
        record.part(Op.create).text(`/multi/${i}`).data(Buffer.alloc(0)).acl(OPEN_ACL).int(0);
        record.part(Op.delete).text(`/multi/${i}`).int(-1);
      }
      return { client, frames: [frameOf(Op.multi, record.endOfParts())], depth: 2 };
    },
    attack: flood,
  },
  {
    name: 'setData of 1 MB, 64 at a time',
    async make({ port }) {
      const client = await session(port);
      await ensure(client, '/set');
      const set = new Bytes().text('/set').data(Buffer.alloc(1_000_000)).int(-1);
      return { client, frames: [frameOf(Op.setData, set)], depth: 64 };
    },
    attack: flood,
  },
  {
    name: 'multis of 100 setData',
    async make({ port }) {
      const client = await session(port);
      await ensure(client, '/multi');
      const record = new Bytes();
      for (let i = 0; i < 100; i++) record.part(Op.setData).text('/multi').data(Buffer.alloc(0)).int(-1);
      const frames = new Array(50).fill(frameOf(Op.multi, record.endOfParts()));
      return { client, frames: [Buffer.concat(frames)], together: frames.length, depth: 4 * frames.length };
    },
    attack: flood,
  },
  {
    name: 'multi of 2,000 setData, 50 watchers',
    make: (world) => makeWatchedMultis(world, 1),
    attack: flood,
  },
  {
    name: 'multis of 2,000 setData, 50 watchers, 16 at a time',
    make: (world) => makeWatchedMultis(world, 16),
    attack: flood,
  },
  {
    name: 'setData with 2,000 watchers, 1,000 at a time',
    async make({ port, scale }) {
      const writer = await session(port);
      await ensure(writer, '/told');
      const watchers = await watchersOf(port, '/told', 2000 * scale);
      const set = new Bytes().text('/told').data(Buffer.alloc(0)).int(-1);
      return { client: writer, frames: [frameOf(Op.setData, set)], depth: 1000, watchers };
    },
    attack: flood,
  },
];

async function makeWatchedMultis({ port, scale }, depth) {
  const writer = await session(port);
  await ensure(writer, '/told');
  const watchers = await watchersOf(port, '/told', 50);
  const record = new Bytes();
  for (let i = 0; i < 2000 * scale; i++) record.part(Op.setData).text('/told').data(Buffer.alloc(0)).int(-1);
  return { client: writer, frames: [frameOf(Op.multi, record.endOfParts())], depth, watchers };
}
