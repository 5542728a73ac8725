/**
 * The safety properties of the caches. In every seed, at any moment and under any faults:
 *
 * 1. a cache shows the tree as it was at the zxid that it names (as long as some server still has the whole history to
 *    compare it with), and the zxid never decreases;
 * 2. an acknowledged write is shown once `waitFor` resolves, also during faults;
 * 3. each change begins where the previous one of the same path ended;
 * 4. the cache catches up with the history once the faults are over.
 */
import { type Client, isZooKeeperError } from '@meerkat/client';
import { type CommittedTree, DEFAULT_LINK, type SeededRandom } from '@meerkat/simulator';
import { expect } from 'vitest';
import { committedSince0 } from '../testing/committed.ts';
import type { Fleet } from '../testing/fleet.ts';
import { simulate } from '../testing/simulate.ts';
import type { Cache } from './cache.ts';
import type { CachedZnode } from './cached-znode.ts';
import { ChildrenCache } from './children-cache.ts';
import { NodeCache } from './node-cache.ts';
import { TreeCache } from './tree-cache.ts';

const OPTIONS = { sessionTimeoutMs: 6000, connectTimeoutMs: 60_000 };
const STORM_MS = 8000;
const KINDS = ['crash', 'power', 'pause', 'partition', 'isolate', 'break', 'slow', 'skew', 'restart-all'] as const;
const WRITERS = ['writer1', 'writer2', 'writer3'];

type ListedCache = Cache & { readonly all: () => Iterable<CachedZnode> };

/** What a cache showed. */
interface Shown {
  readonly cache: string;
  readonly zxid: number;
  /** `mzxid data` by path. */
  readonly znodes: ReadonlyMap<string, string>;
}

simulate(
  'every image is the tree at its zxid',
  3,
  async (fleet, seed) => {
    const shown = await live(fleet, seed);
    const tree = committedSince0(fleet.ensemble);
    const newest: Map<string, number> = new Map();
    for (const image of shown) {
      expect(image.zxid, `${image.cache} never goes back`).toBeGreaterThanOrEqual(newest.get(image.cache) ?? 0);
      newest.set(image.cache, image.zxid);
      if (tree === null) continue;
      const depthMax = image.cache === 'tree' ? 99 : image.cache === 'children' ? 1 : 0;
      const due = treeAt(tree, image.zxid, depthMax);
      expect(Object.fromEntries(image.znodes), `${image.cache} at 0x${image.zxid.toString(16)}`).toEqual(due);
    }
    expect(new Set(shown.map(({ zxid }) => zxid)).size).toBeGreaterThan(0);
  },
  (seed) => ({
    core: { snapCount: 200 },
    // Streams arrive in other pieces than they were written: events and replies together, and one event in two halves.
    link: {
      ...DEFAULT_LINK,
      delayMaxMs: 5,
      splitChance: 0.5,
      mergeChance: 0.5,
      bytesPerMs: isWatchingMore(seed) ? 1000 : undefined,
    },
  }),
);

function isWatchingMore(seed: number): boolean {
  return seed % 2 === 0;
}

async function live(fleet: Fleet, seed: number): Promise<Shown[]> {
  const { world } = fleet;
  const random = world.random.fork('program');
  const writers = await Promise.all(WRITERS.map((host) => fleet.connectAs(host, OPTIONS)));
  const reader = await fleet.connectAs('reader', OPTIONS);
  const shown: Shown[] = [];

  // Some of the tree exists before the caches, some is written while they start.
  for (let i = 0; i < 20; i++) await write(writers[0]!, random);
  if (seed % 3 === 0) leaveOutZxids(reader);
  const caches = openCaches(reader, isWatchingMore(seed) ? 0 : 100);
  if (isWatchingMore(seed)) await watchMore(reader);
  const replica: Map<string, bigint> = new Map();
  const following = (async () => {
    for await (const { path, before, after } of caches['tree']!.changes({ initial: true })) {
      expect(before?.stat.mzxid, `${path} before a change`).toBe(replica.get(path));
      if (after === null) replica.delete(path);
      else replica.set(path, after.stat.mzxid);
    }
  })();

  fleet.unleash(STORM_MS, ['reader'], KINDS, 300 * 20 ** random.fraction());

  let isOver = false;
  const writing = writers.map(async (writer) => {
    const pauseMs = random.pick([1, 20, 200]);
    while (!isOver) {
      await write(writer, random).catch(ignoreService);
      await world.sleep(random.between(0, pauseMs));
    }
  });
  // From one server to another, which is behind or ahead, with every event in between missed.
  const moving = (async () => {
    while (!isOver) {
      await world.sleep(random.between(50, 800));
      await reader.moveTo(null, { timeoutMs: 2000 }).catch(ignoreService);
    }
  })();
  const waiting = (async () => {
    while (!isOver) {
      const name = random.pick(Object.keys(caches));
      const written = await writers[0]!.set('/t', `${random.uint32()} waits`).catch(ignoreService);
      await world.sleep(10);
      if (written === undefined) continue;
      const cache = caches[name]!;
      const isThere = await cache.waitFor(written.mzxid, { timeoutMs: random.between(0, 3000) }).then(
        () => true,
        (error: unknown) => ignoreService(error) ?? false,
      );
      if (isThere) expect(cache.zxid, `${name} has caught up`).toBeGreaterThanOrEqual(written.mzxid);
      await world.sleep(random.between(0, 500));
    }
  })();
  const endMs = world.nowMs + STORM_MS;
  while (world.nowMs < endMs) {
    for (const name of Object.keys(caches)) show(name, caches[name]!, shown);
    await world.sleep(random.between(1, 40));
  }
  isOver = true;
  await Promise.all([...writing, moving, waiting]);
  await fleet.recover();
  const last = await lastZxid(writers[0]!);
  for (const name of Object.keys(caches)) {
    await caches[name]!.waitFor(last, { timeoutMs: 60_000 });
    expect(caches[name]!.stale).toBe(false);
    show(name, caches[name]!, shown);
  }
  await world.sleep(100);
  const image = [...caches['tree']!.all()].map(({ path, stat }) => [path, stat.mzxid] as const);
  expect(new Map([...replica].sort())).toEqual(new Map(image.sort()));
  for (const name of Object.keys(caches)) await caches[name]!.close();
  await following;
  await Promise.all([...writers, reader].map((client) => client.close()));
  return shown;
}

function openCaches(reader: Client, refreshSpreadMs: number): Record<string, ListedCache> {
  const tree = new TreeCache(reader, '/t', { requestsMax: 4, refreshSpreadMs });
  const children = new ChildrenCache(reader, '/t', { refreshSpreadMs });
  const node = new NodeCache(reader, '/t/a', { refreshSpreadMs });
  return {
    tree: Object.assign(tree, { all: () => tree.znodes() }),
    children: Object.assign(children, {
      all: () => [children.parent, ...children.names().map((name) => children.get(name))].filter((it) => it !== null),
    }),
    node: Object.assign(node, { all: () => [node.get()].filter((it) => it !== null) }),
  };
}

/**
 * So many watches that rearming takes two requests: the first rearms the caches, and events arrive before the second
 * has passed a slow link. These caches refresh without a delay, before more changes hide what was missed.
 */
async function watchMore(reader: Client): Promise<void> {
  for (const name of ['w', 'x', 'y', 'z']) await reader.exists(`/${name.repeat(70_000)}`, { watch: true });
}

/** From now on, the watches of a client report events without zxids, as from servers before 3.9. */
function leaveOutZxids(client: Client): void {
  const watch = client.watch.bind(client);
  client.watch = (path, options) => {
    const stream = watch(path, options);
    const take = stream.take.bind(stream);
    stream.take = () => {
      const event = take();
      return event === null || event.type === 'gap' ? event : { ...event, zxid: null };
    };
    return stream;
  };
}

function show(name: string, cache: ListedCache, shown: Shown[]): void {
  const { zxid } = cache;
  if (zxid < 0n) return;
  const znodes = new Map([...cache.all()].map((znode) => [znode.path, describe(znode.stat.mzxid, znode.data)]));
  shown.push({ cache: name, zxid: Number(zxid), znodes });
}

/** Paths of `/t`, three levels, few enough to be written again and again. */
async function write(client: Client, random: SeededRandom): Promise<void> {
  const path = random.pick(PATHS);
  const data = `${random.uint32()}`;
  const what = random.between(1, 12);
  if (what > 10) {
    await Promise.all(Array.from({ length: 4 }, (_, i) => client.set(path, `${data}.${i}`).catch(ignoreService)));
  } else if (what <= 4) await client.set(path, data).catch(ignoreService);
  else if (what <= 7) await client.create(path, data).catch(ignoreService);
  else if (what === 8) await client.delete(path).catch(ignoreService);
  else if (what === 9) await client.transaction().set('/t', data).set(path, data).commit().catch(ignoreService);
  else await client.transaction().delete(path).create(path, data).set(path, `${data}!`).commit().catch(ignoreService);
}

const PATHS = [
  '/t',
  ...['a', 'b', 'c'].flatMap((a) => [`/t/${a}`, ...['x', 'y'].flatMap((b) => [`/t/${a}/${b}`, `/t/${a}/${b}/z`])]),
];

/** Retries through every fault. */
async function lastZxid(client: Client): Promise<bigint> {
  for (;;) {
    await client.whenConnected();
    const created = await client.create('/last-', '', { sequential: true }).catch(ignoreService);
    if (created !== undefined) return created.stat.czxid;
  }
}

function ignoreService(error: unknown): undefined {
  if (!isZooKeeperError(error)) throw error;
}

function treeAt(tree: CommittedTree, zxid: number, depthMax: number): Record<string, string> {
  const due: Record<string, string> = {};
  const add = (path: string, depth: number): void => {
    const state = tree.stateAt(path, zxid);
    if (state === null) return;
    due[path] = describe(BigInt(state.mzxid), state.data);
    if (depth < depthMax) for (const name of tree.childrenAt(path, zxid)) add(`${path}/${name}`, depth + 1);
  };
  add(depthMax === 0 ? '/t/a' : '/t', 0);
  return due;
}

function describe(mzxid: bigint, data: Uint8Array | null): string {
  return `${mzxid} ${data === null ? 'null' : new TextDecoder().decode(data)}`;
}
