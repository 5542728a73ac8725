// Attacks with long paths, with watches and quotas along them.
import { createDeep, ensure, flood, QUOTAS, session, setQuota } from './preparation.mjs';
import { Bytes, createRecord, FRAME_BYTES_MAX, frameOf, Op, pathRecord, watchableRecord } from './wire.mjs';

/** @type {import('./attacks.mjs').Attack[]} */
export const PATHS = [
  {
    name: 'writes to a path of 4,000 levels, a recursive watch elsewhere',
    async make({ port, scale }) {
      const client = await session(port);
      await client.ask(Op.addWatch, pathRecord('/somewhere/else').int(1));
      const path = await createDeep(client, 4000 * scale);
      const set = new Bytes().text(path).data(Buffer.from('x')).int(-1);
      return { client, frames: [frameOf(Op.setData, set)], depth: 100 };
    },
    attack: flood,
  },
  {
    name: 'writes to a path of 4,000 levels, a recursive watch at each',
    async make({ port, scale }) {
      const client = await session(port);
      const path = await createDeep(client, 4000 * scale);
      for (let i = 1; i <= 4000 * scale; i++) client.send(frameOf(Op.addWatch, pathRecord('/d'.repeat(i)).int(1)));
      await client.answered(client.requests);
      const set = new Bytes().text(path).data(Buffer.from('x')).int(-1);
      return { client, frames: [frameOf(Op.setData, set)], depth: 100 };
    },
    attack: flood,
  },
  {
    name: 'creates and deletes below 4,000 levels, a recursive watch and a quota at each 40th',
    async make({ port, scale }) {
      const client = await session(port);
      const path = await createDeep(client, 4000 * scale);
      for (let i = 40; i <= 4000 * scale; i += 40) {
        client.send(frameOf(Op.addWatch, pathRecord('/d'.repeat(i)).int(1)));
      }
      await createDeep(client, 4000 * scale, '/zookeeper/quota');
      for (let i = 40; i <= 4000 * scale; i += 40) await setQuota(client, '/d'.repeat(i));
      const frames = [
        frameOf(Op.create, createRecord(`${path}/x`)),
        frameOf(Op.delete, new Bytes().text(`${path}/x`).int(-1)),
      ];
      return { client, frames, depth: 100, path };
    },
    attack: flood,
    // Otherwise every write of later attacks would look for a quota.
    async unmake({ client, path }) {
      for (let i = 40; i <= path.length / 2; i += 40) {
        const limits = `${QUOTAS}${'/d'.repeat(i)}/zookeeper_limits`;
        client.send(frameOf(Op.delete, new Bytes().text(limits).int(-1)));
      }
      await client.answered(client.requests);
    },
  },
  {
    name: 'a quota of 1,000,000 znodes, set again and again',
    async make({ port }) {
      const client = await session(port);
      await ensure(client, `${QUOTAS}/many`);
      await setQuota(client, '/many');
      const stats = `${QUOTAS}/many/zookeeper_stats`;
      const frames = [
        frameOf(Op.delete, new Bytes().text(stats).int(-1)),
        frameOf(Op.create, createRecord(stats, Buffer.from('count=0,bytes=0'))),
      ];
      return { client, frames, depth: 100 };
    },
    attack: flood,
    async unmake({ client }) {
      await client.ask(Op.delete, new Bytes().text(`${QUOTAS}/many/zookeeper_limits`).int(-1));
    },
  },
  {
    name: 'exists of paths of 1 MB',
    async make({ port }) {
      const path = '/d'.repeat((FRAME_BYTES_MAX - 64) / 2);
      return { client: await session(port), frames: [frameOf(Op.exists, watchableRecord(path))], depth: 8 };
    },
    attack: flood,
  },
];
