// Attacks with expensive reads.
import { createMany, endSession, ensure, flood, MANY, session, znodeOf } from './preparation.mjs';
import { Bytes, FRAME_BYTES_MAX, frameOf, Op, pathRecord, watchableRecord } from './wire.mjs';

/** @type {import('./attacks.mjs').Attack[]} */
export const READS = [
  {
    name: 'multiRead of 5,000 × 1 MB',
    async make({ port }) {
      const client = await session(port);
      await ensure(client, '/big', Buffer.alloc(1_000_000));
      const record = new Bytes();
      for (let i = 0; i < 5000; i++) record.part(Op.getData).text('/big').byte(0);
      return { client, frames: [frameOf(Op.multiRead, record.endOfParts())], depth: 2 };
    },
    attack: flood,
  },
  {
    name: 'multiRead of 10 × 1 MB',
    async make({ port }) {
      const client = await session(port);
      await ensure(client, '/big', Buffer.alloc(1_000_000));
      const record = new Bytes();
      for (let i = 0; i < 10; i++) record.part(Op.getData).text('/big').byte(0);
      return { client, frames: [frameOf(Op.multiRead, record.endOfParts())], depth: 4 };
    },
    attack: flood,
  },
  {
    name: 'multiRead, 1 MB of small reads',
    async make({ port, znodes }) {
      const client = await session(port);
      const record = new Bytes();
      for (let i = 0; record.length < FRAME_BYTES_MAX - 64; i++) {
        record
          .part(Op.getData)
          .text(znodeOf((i * 7919) % znodes))
          .byte(0);
      }
      return { client, frames: [frameOf(Op.multiRead, record.endOfParts())], depth: 4 };
    },
    attack: flood,
  },
  {
    name: 'getChildren of 1,000,000',
    make: async ({ port }) => ({
      client: await session(port),
      frames: [frameOf(Op.getChildren, watchableRecord(MANY))],
      depth: 4,
    }),
    attack: flood,
  },
  {
    name: 'getAllChildrenNumber of 1,000,000',
    make: async ({ port }) => ({
      client: await session(port),
      frames: [frameOf(Op.getAllChildrenNumber, pathRecord('/many'))],
      depth: 200,
    }),
    attack: flood,
  },
  {
    name: 'getEphemerals by prefix of 200,000',
    async make({ port, scale }) {
      const client = await session(port);
      await createMany(client, '/ephemerals', 200_000 * scale, { flags: 1 });
      return { client, frames: [frameOf(Op.getEphemerals, pathRecord('/none'))], depth: 200 };
    },
    attack: flood,
    unmake: endSession,
  },
  {
    name: 'getEphemerals, all 200,000',
    async make({ port, scale }) {
      const client = await session(port);
      await createMany(client, '/ephemerals', 200_000 * scale, { flags: 1 });
      return { client, frames: [frameOf(Op.getEphemerals, pathRecord('/'))], depth: 4 };
    },
    attack: flood,
    unmake: endSession,
  },
];
