// Attacks with many connections, in parallel or one after another, or with the traffic of one.
import { connect } from 'node:net';
import {
  authFrame,
  createWithLongAcl,
  ensure,
  flood,
  session,
  sessions,
  watchersOf,
  watchFrames,
} from './preparation.mjs';
import { Bytes, FRAME_BYTES_MAX, frameOf, Op, watchableRecord } from './wire.mjs';

/** @type {import('./attacks.mjs').Attack[]} */
export const CONNECTIONS = [
  {
    name: '100 connections, a multiRead of 10 × 1 MB each',
    async make({ port, scale }) {
      const client = await session(port);
      await ensure(client, '/big', Buffer.alloc(1_000_000));
      const record = new Bytes();
      for (let i = 0; i < 10; i++) record.part(Op.getData).text('/big').byte(0);
      const frame = frameOf(Op.multiRead, record.endOfParts());
      const clients = await Promise.all(Array.from({ length: 100 * scale }, () => session(port)));
      return { clients, frames: [frame], depth: 1 };
    },
    attack: floodAll,
  },
  {
    name: '100 connections, getData of 1 MB',
    async make({ port, scale }) {
      const client = await session(port);
      await ensure(client, '/big', Buffer.alloc(1_000_000));
      const frame = frameOf(Op.getData, watchableRecord('/big'));
      const clients = await Promise.all(Array.from({ length: 100 * scale }, () => session(port)));
      return { clients, frames: [frame], depth: 1 };
    },
    attack: floodAll,
  },
  {
    name: 'sessions that begin and end, 60 at a time',
    async make({ port }) {
      return { port, client: await session(port) };
    },
    async attack({ port }, isOver) {
      const churn = async () => {
        while (!isOver()) {
          const client = await session(port);
          await client.ask(Op.closeSession).catch(() => undefined);
          client.drop();
        }
      };
      await Promise.all(Array.from({ length: 60 }, churn));
    },
  },
  {
    name: '60 connections, 1,000 writes each at a time',
    async make({ port }) {
      const client = await session(port);
      await ensure(client, '/set');
      const set = frameOf(Op.setData, new Bytes().text('/set').data(Buffer.alloc(100)).int(-1));
      return { clients: await sessions(port, 60), frames: [set], depth: 1000 };
    },
    attack: floodAll,
  },
  {
    name: 'first reads behind a long ACL, by 90 identities each',
    async make({ port }) {
      const client = await session(port);
      return { port, client, path: await createWithLongAcl(client) };
    },
    async attack({ port, path }, isOver) {
      while (!isOver()) {
        const client = await session(port);
        for (let i = 0; i < 90; i++) client.send(authFrame(`${i}:p`));
        client.send(frameOf(Op.getData, watchableRecord(path)));
        await client.answered(client.requests);
        client.drop();
      }
    },
  },
  {
    name: 'a request of 1 MB in pieces of 100 bytes',
    async make({ port }) {
      const client = await session(port);
      const record = new Bytes()
        .text('/none')
        .data(Buffer.alloc(FRAME_BYTES_MAX - 64))
        .int(-1);
      return { client, frame: frameOf(Op.setData, record) };
    },
    async attack({ client, frame }, isOver) {
      while (!isOver()) {
        for (let at = 0; at < frame.length && !isOver(); at += 100) {
          client.sendRaw(frame.subarray(at, at + 100));
          if (at % 10_000 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
      }
      client.drop();
    },
  },
  {
    name: 'wchp, with 1,000,000 watches',
    async make({ port, scale }) {
      const client = await session(port);
      const frames = watchFrames(1_000_000 * scale);
      for (const frame of frames) client.send(frame);
      await client.answered(frames.length);
      return { port, client };
    },
    async attack({ port }, isOver) {
      while (!isOver()) await word(port, 'wchp');
    },
  },
  {
    name: 'cons, dump and mntr, with 5,000 connections',
    async make({ port, scale }) {
      const clients = await sessions(port, 5000 * scale);
      return { port, client: clients[0], clients };
    },
    async attack({ port }, isOver) {
      for (let i = 0; !isOver(); i++) await word(port, ['cons', 'dump', 'mntr'][i % 3]);
    },
  },
  {
    name: 'one write, 5,000 watchers',
    async make({ port, scale }) {
      const writer = await session(port);
      await ensure(writer, '/watched');
      const watchers = await watchersOf(port, '/watched', 5000 * scale);
      const set = new Bytes().text('/watched').data(Buffer.alloc(0)).int(-1);
      return { client: writer, frames: [frameOf(Op.setData, set)], depth: 2, watchers };
    },
    attack: flood,
  },
];

async function floodAll({ clients, ...world }, isOver) {
  await Promise.all(clients.map((client) => flood({ client, ...world }, isOver)));
}

function word(port, text) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('connect', () => socket.write(text));
    socket.on('data', () => {});
    socket.on('error', () => {});
    socket.on('close', resolve);
  });
}
