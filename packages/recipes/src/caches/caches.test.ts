import { type Client, NoAuthError, TimeoutError } from '@meerkat/client';
import type { VirtualWorld } from '@meerkat/simulator';
import { expect, test } from 'vitest';
import { Fleet } from '../testing/fleet.ts';
import { ChildrenCache } from './children-cache.ts';
import { NodeCache } from './node-cache.ts';
import { TreeCache } from './tree-cache.ts';

interface Stage {
  readonly world: VirtualWorld;
  readonly writer: Client;
  readonly reader: Client;
  /** Cuts the reader's connection and lets nothing through until the returned function is called. */
  cut(): () => void;
}

/** One server, a client that writes and one that has caches. */
function onStage(program: (stage: Stage) => Promise<void>): Promise<void> {
  const { world, ensemble } = new Fleet(1, { servers: 1 });
  return world.run(async () => {
    const options = { servers: ensemble.connectString, sessionTimeoutMs: 10_000 };
    const [writer, reader] = await Promise.all(['writer', 'reader'].map((host) => world.connect(host, options)));
    const cut = (): (() => void) => {
      const [server] = ensemble.hosts;
      world.network.partition([server!], ['reader']);
      return () => world.network.heal();
    };
    await program({ world, writer: writer!, reader: reader!, cut });
    await Promise.all([writer!.close(), reader!.close()]);
  });
}

const text = (data: Uint8Array | null | undefined): string | null =>
  data === null || data === undefined ? null : new TextDecoder().decode(data);

/** The length of the frame, the header, type, state, the length of the path. */
const NOTIFICATION_BYTES = 4 + 16 + 4 + 4 + 4;

test('a cache of a znode shows it, its absence, and each change', () =>
  onStage(async ({ writer, reader }) => {
    await using cache = new NodeCache(reader, '/config');
    await cache.ready;
    expect(cache.get()).toBeNull();
    const changes = cache.changes();

    const { stat } = await writer.create('/config', 'one');
    await cache.waitFor(stat.czxid);
    expect(text(cache.get()?.data)).toBe('one');
    expect(cache.stale).toBe(false);
    expect((await changes.next()).value).toMatchObject({ type: 'created', path: '/config', before: null });

    await writer.create('/config/below', 'is not part of it');
    await writer.delete('/config/below');
    await cache.waitFor((await writer.set('/config', 'two')).mzxid);
    const changed = (await changes.next()).value;
    expect(changed?.type).toBe('changed');
    expect([text(changed?.before?.data), text(changed?.after?.data)]).toEqual(['one', 'two']);

    await writer.delete('/config');
    expect((await changes.next()).value).toMatchObject({ type: 'deleted', after: null });
    expect(cache.get()).toBeNull();
  }));

test('a cache of children leaves out what is below them', () =>
  onStage(async ({ writer, reader }) => {
    for (const path of ['/m', '/m/b', '/m/b/deep']) await writer.create(path, path);
    await using cache = new ChildrenCache(reader, '/m');
    await cache.ready;
    const { stat } = await writer.create('/m/a', null);
    await cache.waitFor(stat.czxid);
    expect(cache.names()).toEqual(['a', 'b']);
    expect(text(cache.get('b')?.data)).toBe('/m/b');
    expect(cache.get('a')?.data).toBeNull();
    expect(cache.get('b/deep')).toBeNull();
  }));

test('a cache of a tree may be limited in depth, and leave out subtrees', () =>
  onStage(async ({ writer, reader }) => {
    for (const path of ['/t', '/t/a', '/t/a/x', '/t/a/x/y', '/t/no', '/t/no/x']) await writer.create(path);
    await using cache = new TreeCache(reader, '/t', { depthMax: 2, includes: (path) => path !== '/t/no' });
    await cache.ready;
    await writer.create('/t/no/later');
    await writer.create('/t/a/x/later');
    await cache.waitFor((await writer.create('/t/b')).stat.czxid);
    expect([...cache.znodes()].map(({ path }) => path).sort()).toEqual(['/t', '/t/a', '/t/a/x', '/t/b']);
    expect(cache.children('/t')).toEqual(['a', 'b']);
    expect(cache.children('/t/no')).toBeNull();
  }));

test('a transaction is shown as a whole or not at all', () =>
  onStage(async ({ world, writer, reader }) => {
    await writer.create('/t');
    for (const name of ['a', 'b']) await writer.create(`/t/${name}`, '0');
    await using cache = new TreeCache(reader, '/t');
    await cache.ready;
    const seen: string[] = [];
    const following = (async () => {
      for await (const _ of cache.changes()) {
        const pair = `${text(cache.get('/t/a')?.data)} ${text(cache.get('/t/b')?.data)}`;
        if (seen.at(-1) !== pair) seen.push(pair);
      }
    })();
    for (let i = 1; i <= 50; i++) await writer.transaction().set('/t/a', `${i}`).set('/t/b', `${i}`).commit();
    await world.sleep(100);
    await cache.close();
    await following;
    expect(seen.length).toBeGreaterThan(5);
    expect(seen.at(-1)).toBe('50 50');
    for (const pair of seen) expect(pair.split(' ')[0]).toBe(pair.split(' ')[1]);
  }));

test('without a connection a cache is stale and keeps its image; afterwards it reads only what has changed', () =>
  onStage(async ({ world, writer, reader, cut }) => {
    await writer.create('/t', 'root');
    for (let group = 0; group < 10; group++) {
      await writer.create(`/t/${group}`);
      const creations = Array.from({ length: 99 }, (_, i) => writer.create(`/t/${group}/${i}`, 'x'.repeat(500)));
      await Promise.all(creations);
    }
    await using cache = new TreeCache(reader, '/t');
    await cache.ready;
    expect(cache.size).toBe(1001);
    expect(cache.reads).toEqual({ data: 1001, stats: 0, lists: 11 });

    const before = cache.zxid;
    const heal = cut();
    await world.until(() => reader.state !== 'connected', 60_000);
    expect(cache.stale).toBe(true);
    await writer.set('/t/3/7', 'changed');
    await writer.create('/t/5/new', 'created');
    await writer.delete('/t/7/0');
    expect(cache.zxid).toBe(before);
    expect(text(cache.get('/t/3/7')?.data)).toBe('x'.repeat(500));

    heal();
    const { mzxid } = await writer.set('/t', 'root again');
    await cache.waitFor(mzxid, { timeoutMs: 60_000 });
    expect(cache.stale).toBe(false);
    expect(text(cache.get('/t/3/7')?.data)).toBe('changed');
    expect(text(cache.get('/t/5/new')?.data)).toBe('created');
    expect(cache.get('/t/7/0')).toBeNull();
    expect(text(cache.get('/t')?.data)).toBe('root again');
    // Each znode is asked for its stat, and two parents for their children; only the changed ones are read.
    const { data, stats, lists } = cache.reads;
    expect({ data: data - 1001, lists: lists - 11 }).toEqual({ data: 3, lists: 2 });
    expect(stats).toBeLessThanOrEqual(1010);
  }));

test('a transaction that was only partly reported before the connection broke is shown as a whole', () =>
  onStage(async ({ world, writer, reader }) => {
    await writer.create('/t', 'root');
    await writer.create('/t/a', 'old');
    await using cache = new TreeCache(reader, '/t');
    await cache.ready;
    const hearing = reader.watch('/t', { recursive: true });
    await hearing.ready;

    // The deletion arrives, the events after it are lost.
    const { network } = world;
    const stream = network.openEnds.find(({ host }) => host === 'reader')!;
    let bytesLeft = NOTIFICATION_BYTES + '/t/a'.length;
    const admit = (connection: number, from: string, bytes: number): number => {
      if (connection !== stream.connection || from === 'reader') return bytes;
      const admitted = Math.min(bytes, bytesLeft);
      bytesLeft -= admitted;
      return admitted;
    };
    network.valve = { admit };
    const multi = writer.transaction().delete('/t/a').create('/t/a', 'new').create('/t/b', 'too');
    const [, created] = await multi.commit();
    const zxid = created.stat!.czxid;
    for await (const event of hearing) {
      expect(event).toEqual({ type: 'deleted', path: '/t/a', zxid });
      break;
    }
    stream.breakStream();
    network.valve = null;

    await cache.waitFor(zxid, { timeoutMs: 60_000 });
    const znodes = [...cache.znodes()].map(({ path, data }) => `${path} ${text(data)}`);
    expect(znodes.sort()).toEqual(['/t root', '/t/a new', '/t/b too']);
  }));

test('a znode deleted while disconnected is gone, also when the next connection ends before it is checked', () =>
  onStage(async ({ world, writer, reader, cut }) => {
    await writer.create('/t');
    await writer.create('/t/a');
    await using cache = new TreeCache(reader, '/t', { requestsMax: 1, refreshSpreadMs: 0 });
    await cache.ready;

    const heal = cut();
    for (const end of world.network.openEnds) if (end.host === 'reader') end.breakStream();
    await world.until(() => reader.state !== 'connected', 60_000);
    const { stats } = cache.reads;
    await writer.delete('/t/a');
    heal();
    // It asks for the root first; after that reply there is another connection before it asks for the child.
    await world.until(() => cache.reads.stats > stats, 60_000, 0.05);
    await reader.moveTo(null);
    await world.until(() => !cache.stale, 60_000);
    expect(cache.get('/t/a')).toBeNull();

    const { mzxid } = await writer.set('/t', 'later');
    await cache.waitFor(mzxid, { timeoutMs: 60_000 });
    expect(cache.get('/t/a')).toBeNull();
  }));

test('a cache is current again after a gap although a znode was deleted before it was checked', () =>
  onStage(async ({ world, writer, reader }) => {
    for (const path of ['/t', '/t/a', '/t/b']) await writer.create(path);
    await using cache = new TreeCache(reader, '/t', { refreshSpreadMs: 10_000 });
    await cache.ready;
    const { stats } = cache.reads;
    for (const end of world.network.openEnds) if (end.host === 'reader') end.breakStream();
    await world.until(() => reader.state !== 'connected', 60_000);
    await world.until(() => reader.state === 'connected', 60_000);
    await world.sleep(20);
    await writer.delete('/t/a');
    const { mzxid: zxid } = await writer.set('/t/b', 'seen');
    await world.until(() => !cache.stale, 60_000);
    await cache.waitFor(zxid, { timeoutMs: 60_000 });
    // Of the root only: both others were reported in the pause before the checks.
    expect(cache.reads.stats - stats).toBe(1);
    expect(cache.get('/t/a')).toBeNull();
    expect(text(cache.get('/t/b')?.data)).toBe('seen');
  }));

test('a child that was missed is found when the connection ends again before the list, behind the event of another child', () =>
  onStage(async ({ world, writer, reader, cut }) => {
    for (const path of ['/t', '/t/a', '/t/b']) await writer.create(path);
    await using cache = new TreeCache(reader, '/t', { requestsMax: 1, refreshSpreadMs: 0 });
    await cache.ready;
    const { network } = world;
    const breakStreams = (): void => {
      for (const end of network.openEnds) if (end.host === 'reader') end.breakStream();
    };

    const heal = cut();
    breakStreams();
    await world.until(() => reader.state !== 'connected', 60_000);
    await writer.create('/t/missed');
    const { lists } = cache.reads;
    const isListing = (): boolean => cache.reads.lists > lists;
    // Its request for the children stays in its kernel.
    network.valve = { admit: (_, from, bytes) => (from === 'reader' && isListing() ? 0 : bytes) };
    heal();
    await world.until(isListing, 60_000);
    await writer.create('/t/live');
    const { mzxid: seen } = await writer.set('/t/a', 'seen');
    await world.until(() => reader.lastZxid >= seen, 60_000);
    network.valve = null;
    breakStreams();

    const { mzxid } = await writer.set('/t', 'later');
    await cache.waitFor(mzxid, { timeoutMs: 60_000 });
    expect(cache.children('/t')).toEqual(['a', 'b', 'live', 'missed']);
  }));

test('missed changes are found also if events come before all watches of the client are rearmed', () =>
  onStage(async ({ world, writer, reader, cut }) => {
    for (const path of ['/t', '/t/p', '/t/q']) await writer.create(path);
    await using cache = new TreeCache(reader, '/t', { refreshSpreadMs: 0 });
    await cache.ready;
    // So many that rearming takes several requests; the first includes the cache's watch.
    const others = Array.from({ length: 30 }, (_, i) => reader.exists(`/${i}${'x'.repeat(10_000)}`, { watch: true }));
    await Promise.all(others);

    const heal = cut();
    for (const end of world.network.openEnds) if (end.host === 'reader') end.breakStream();
    await world.until(() => reader.state !== 'connected', 60_000);
    const { stat: missed } = await writer.create('/t/p/missed');
    // The next connection ends after the first of those requests.
    const { network } = world;
    const { tap } = network;
    let bytesLeft = 0;
    network.tap = {
      onOpen: (...opened) => tap?.onOpen(...opened),
      onClose: (connection) => tap?.onClose(connection),
      onBytes: (connection, from, stage, bytes) => {
        tap?.onBytes(connection, from, stage, bytes);
        if (from !== 'reader' || stage !== 'sent' || bytesLeft < 0 || bytes.length < 100_000) return;
        bytesLeft = 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
      },
    };
    const admit = (_: number, from: string, size: number): number => {
      if (from !== 'reader' || bytesLeft === 0) return size;
      const admitted = Math.min(size, Math.max(0, bytesLeft));
      bytesLeft = -1;
      return admitted;
    };
    network.valve = { admit };
    heal();
    await world.until(() => bytesLeft < 0, 60_000);
    await world.sleep(100);
    await writer.create('/t/p/told');
    await writer.set('/t/q', 'told');
    await world.sleep(100);
    expect(cache.zxid).toBeLessThan(missed.czxid);
    network.valve = null;
    network.tap = tap;
    for (const end of network.openEnds) if (end.host === 'reader') end.breakStream();

    const { mzxid } = await writer.set('/t', 'later');
    await cache.waitFor(mzxid, { timeoutMs: 60_000 });
    expect(cache.children('/t/p')).toEqual(['missed', 'told']);
  }));

test('unconsumed changes are merged, and a znode that came and went is not reported', () =>
  onStage(async ({ writer, reader }) => {
    await writer.create('/t', '0');
    await using cache = new TreeCache(reader, '/t');
    await cache.ready;
    const changes = cache.changes({ initial: true });
    expect((await changes.next()).value).toMatchObject({ type: 'created', path: '/t' });
    for (let i = 1; i <= 5; i++) await writer.set('/t', `${i}`);
    await writer.create('/t/brief');
    await cache.waitFor((await writer.create('/t/mark')).stat.czxid);
    await writer.delete('/t/brief');
    await cache.waitFor((await writer.set('/t', '6')).mzxid);
    const first = (await changes.next()).value;
    expect([text(first?.before?.data), text(first?.after?.data)]).toEqual(['0', '6']);
    expect((await changes.next()).value).toMatchObject({ type: 'created', path: '/t/mark' });
  }));

test('waiting for a zxid that does not come ends at the timeout', () =>
  onStage(async ({ reader }) => {
    await using cache = new NodeCache(reader, '/a');
    await cache.ready;
    const { stat } = await reader.create('/elsewhere');
    await cache.waitFor(stat.czxid);
    await expect(cache.waitFor(stat.czxid + 1n, { timeoutMs: 5000 })).rejects.toThrow(TimeoutError);
  }));

test('a cache is stale from the loss of a connection until it has caught up, also while its watch is rearmed', () =>
  onStage(async ({ world, writer, reader, cut }) => {
    await writer.create('/a', 'old');
    await using cache = new NodeCache(reader, '/a');
    await cache.ready;
    const mend = cut();
    await world.until(() => reader.state !== 'connected', 20_000);
    await writer.set('/a', 'new');
    mend();
    const seen: string[] = [];
    const isBack = (): boolean => {
      if (reader.state === 'connected') seen.push(`${cache.stale ? 'stale' : 'fresh'} ${text(cache.get()?.data)}`);
      return seen.at(-1) === 'fresh new';
    };
    reader.onState(() => isBack());
    await world.until(isBack, 20_000);
    expect(seen[0]).toBe('stale old');
    expect(seen).not.toContain('fresh old');
    expect(seen.at(-1)).toBe('fresh new');
  }));

test('a cache of a znode that may not be read reports NoAuthError', () =>
  onStage(async ({ writer, reader }) => {
    await writer.create('/secret', 'x', { acl: [{ perms: 31, scheme: 'ip', id: '10.9.9.9' }] });
    const cache = new NodeCache(reader, '/secret');
    await expect(cache.ready).rejects.toThrow(NoAuthError);
    await expect(cache.changes().next()).rejects.toThrow(NoAuthError);
  }));

test('a cache receives no events for what it may no longer read, and fails when it finds out', () =>
  onStage(async ({ world, writer, reader }) => {
    const acl = [{ perms: 31, scheme: 'ip', id: '10.9.9.9' }];
    await writer.create('/t');
    await writer.create('/t/a', 'one');
    const cache = new TreeCache(reader, '/t');
    await cache.ready;
    const { stat } = await writer.create('/t/secret', 'x', { acl });
    await cache.waitFor(stat.czxid);
    expect(cache.children('/t')).toEqual(['a']);
    for (const end of world.network.openEnds) end.breakStream();
    await expect(cache.waitFor(stat.czxid + 1n)).rejects.toThrow(NoAuthError);
  }));

test('a filter that throws ends the cache, and throws nowhere else', () =>
  onStage(async ({ writer, reader }) => {
    await writer.create('/t');
    await using hearing = reader.watch('/t', { recursive: true });
    await hearing.ready;
    const includes = (path: string): boolean => {
      if (path === '/t/bad') throw new TypeError('no path of ours');
      return true;
    };
    await using cache = new TreeCache(reader, '/t', { includes });
    await cache.ready;
    const change = cache.changes().next();
    await writer.create('/t/bad');
    for await (const _ of hearing) {
      expect([cache.zxid >= 0n, cache.stale]).toEqual([true, true]);
      break;
    }
    await expect(change).rejects.toThrow('no path of ours');
    await expect(cache.waitFor(0n)).rejects.toThrow('no path of ours');
  }));

test('a cache whose watch is removed fails', () =>
  onStage(async ({ world, writer, reader }) => {
    await writer.create('/t');
    await using cache = new TreeCache(reader, '/t');
    await cache.ready;
    const change = cache.changes().next();
    await reader.removeWatches('/t', 'any');
    expect(await change).toEqual({ done: true, value: undefined });
    await world.sleep(10);
    await expect(cache.waitFor(0n)).rejects.toThrow('its watch was taken off by removeWatches');
  }));

test('closing a cache, its client or its signal ends its changes', () =>
  onStage(async ({ world, writer, reader }) => {
    await writer.create('/a', '1');
    const ending = new AbortController();
    const caches = [new NodeCache(reader, '/a'), new NodeCache(reader, '/a', { signal: ending.signal })] as const;
    for (const cache of caches) await cache.ready;
    const ends = caches.map((cache) => cache.changes().next());
    ending.abort();
    await caches[0].close();
    for (const end of ends) expect(await end).toEqual({ done: true, value: undefined });
    expect(caches[0].stale).toBe(true);
    expect(text(caches[0].get()?.data)).toBe('1');
    const last = new NodeCache(reader, '/a');
    await last.ready;
    const end = last.changes().next();
    await reader.close();
    await world.sleep(10);
    expect(await end).toEqual({ done: true, value: undefined });
  }));
