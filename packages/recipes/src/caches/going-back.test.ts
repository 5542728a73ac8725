import {
  AbortedError,
  type CallOptions,
  type Client,
  DataInconsistencyError,
  NotReadOnlyError,
  ThrottledError,
} from '@meerkat/client';
import type { VirtualServer, VirtualWorld } from '@meerkat/simulator';
import { expect, test, vi } from 'vitest';
import { Fleet } from '../testing/fleet.ts';
import { TreeCache } from './tree-cache.ts';

interface Stage {
  readonly world: VirtualWorld;
  readonly server: VirtualServer;
  readonly writer: Client;
  readonly reader: Client;
  readonly cache: TreeCache;
  /** Keeps the reader away until its session has expired, and does something meanwhile. */
  keepAway(meanwhile: () => Promise<void>): Promise<void>;
  /** Closes the reader's next connection once instead of answering. @returns the connect requests from then on */
  closeOnce(): readonly ConnectRequest[];
}

interface ConnectRequest {
  readonly lastZxidSeen: bigint;
  readonly sessionId: bigint;
}

/** One server with a small tree, a client that writes and one that has a cache of it. */
function onStage(program: (stage: Stage) => Promise<void>): Promise<void> {
  const { world, ensemble } = new Fleet(1, { servers: 1 });
  return world.run(async () => {
    const options = { servers: ensemble.connectString, sessionTimeoutMs: 10_000 };
    const [writer, reader] = await Promise.all(['writer', 'reader'].map((host) => world.connect(host, options)));
    await writer!.create('/t', 'root');
    await writer!.create('/t/a', 'old');
    for (let i = 0; i < 20; i++) await writer!.set('/t', `${i}`);
    await using cache = new TreeCache(reader!, '/t', { refreshSpreadMs: 0 });
    await cache.ready;
    const server = ensemble.servers[0]!;
    await program({
      world,
      server,
      writer: writer!,
      reader: reader!,
      cache,
      keepAway: async (meanwhile) => {
        world.network.partition([server.host], ['reader']);
        await world.until(() => reader!.state === 'lost', 60_000);
        await world.sleep(20_000);
        await meanwhile();
        world.network.heal();
      },
      closeOnce: () => closeOnce(world),
    });
    await Promise.all([writer!.close(), reader!.close()]);
  });
}

function closeOnce({ network }: VirtualWorld): readonly ConnectRequest[] {
  const requests: ConnectRequest[] = [];
  const begun = new Set(network.openEnds.map(({ connection }) => connection));
  const { tap } = network;
  network.tap = {
    onOpen: (...opened) => tap?.onOpen(...opened),
    onClose: (connection) => tap?.onClose(connection),
    onBytes: (connection, from, stage, bytes) => {
      tap?.onBytes(connection, from, stage, bytes);
      if (from !== 'reader' || stage !== 'sent' || begun.has(connection)) return;
      begun.add(connection);
      // After the frame length and the protocol version; the timeout is in between.
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      requests.push({ lastZxidSeen: view.getBigInt64(8), sessionId: view.getBigInt64(20) });
    },
  };
  let isClosed = false;
  const admit = (connection: number, from: string, size: number): number => {
    if (isClosed || from !== 'reader') return size;
    isClosed = true;
    const end = network.openEnds.find((open) => open.connection === connection && open.host === 'reader');
    queueMicrotask(() => end?.breakStream());
    return 0;
  };
  network.valve = { admit };
  return requests;
}

/** Calls back when the cache asks how far the service is, before the request is sent. */
function onSync(reader: Client, callback: () => void): { readonly asked: Promise<void>[] } {
  const sync = reader.sync.bind(reader);
  const asked: Promise<void>[] = [];
  vi.spyOn(reader, 'sync').mockImplementationOnce((path?: string, options?: CallOptions) => {
    callback();
    const answer = sync(path, options);
    answer.catch(() => {});
    asked.push(answer);
    return answer;
  });
  return { asked };
}

/**
 * A server that lags behind what the reader has seen, by the zxids of its replies.
 *
 * @returns a function that lets it catch up
 */
function lag(reader: Client): () => void {
  const lastZxid = vi.spyOn(reader, 'lastZxid', 'get').mockReturnValue(0n);
  return () => void lastZxid.mockRestore();
}

function makeGate(): { readonly promise: Promise<void>; readonly open: () => void } {
  let open = (): void => {};
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

const shown = (cache: TreeCache): string[] =>
  [...cache.znodes()].map(({ path, data }) => `${path} ${new TextDecoder().decode(data ?? undefined)}`).sort();

test('a healthy service is not taken to have gone back when a server closes a connection after session loss', () =>
  onStage(async ({ world, writer, reader, cache, keepAway, closeOnce }) => {
    const { zxid } = cache;
    const seen: bigint[] = [];
    const note = (): void => {
      seen.push(cache.zxid);
    };
    reader.onState(note);
    const sessionId = reader.session!.id;
    const lastZxidSeen = reader.lastZxid;
    let requests: readonly ConnectRequest[] = [];
    await keepAway(async () => {
      await writer.set('/t/a', 'new');
      await writer.create('/t/b', 'too');
      requests = closeOnce();
    });
    await world.until(() => !cache.stale, 60_000, 0.05);
    note();
    // The second one asks whether the session is known at all; with its answer, the last zxid seen is forgotten.
    expect(requests).toEqual([
      { lastZxidSeen, sessionId },
      { lastZxidSeen: 0n, sessionId },
      { lastZxidSeen: 0n, sessionId: 0n },
    ]);
    expect(shown(cache)).toEqual(['/t 19', '/t/a new', '/t/b too']);
    expect(seen).toEqual(seen.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
    expect(seen[0]).toBeGreaterThanOrEqual(zxid);
    const { mzxid } = await writer.set('/t', 'later');
    await cache.waitFor(mzxid, { timeoutMs: 60_000 });
    expect(shown(cache)[0]).toBe('/t later');
  }));

test('a service that was restored to an older state ends the cache', () =>
  onStage(async ({ server, cache, keepAway }) => {
    const change = expect(cache.changes().next()).rejects.toThrow(DataInconsistencyError);
    await keepAway(async () => {
      server.wipe();
      server.start();
    });
    await change;
    await expect(cache.waitFor(0n)).rejects.toThrow('the service has rolled back to before 0x');
    expect(cache.stale).toBe(true);
    expect(shown(cache)).toEqual(['/t 19', '/t/a old']);
  }));

test('the check whether the service has gone back is repeated on the next connection', () =>
  onStage(async ({ world, server, writer, reader, cache, keepAway, closeOnce }) => {
    let isAsked = false;
    let catchUp = (): void => {};
    onSync(reader, () => {
      isAsked = true;
      catchUp();
      world.network.partition([server.host], ['reader']);
    });
    const { zxid, reads } = cache;
    await keepAway(async () => {
      closeOnce();
      catchUp = lag(reader);
    });
    await world.until(() => isAsked, 60_000);
    await writer.set('/t/a', 'new');
    expect([reader.state, cache.stale, cache.zxid >= zxid]).toEqual(['connected', true, true]);
    await world.until(() => reader.state !== 'connected', 60_000);
    expect(cache.reads).toEqual(reads);
    expect(shown(cache)).toEqual(['/t 19', '/t/a old']);

    world.network.heal();
    const { mzxid } = await writer.set('/t', 'later');
    await cache.waitFor(mzxid, { timeoutMs: 60_000 });
    expect(cache.stale).toBe(false);
    expect(shown(cache)).toEqual(['/t later', '/t/a new']);
  }));

test('a cache sends no other requests while it checks whether the service has gone back', () =>
  onStage(async ({ world, writer, reader, cache, keepAway, closeOnce }) => {
    // A read that is refused temporarily during the check: it would be retried half a second later.
    const refusal = makeGate();
    const reading = vi.spyOn(reader, 'get').mockImplementationOnce(async () => {
      await refusal.promise;
      throw new ThrottledError({ operation: 'get', path: '/t/a' });
    });
    await writer.set('/t/a', 'new');
    await world.until(() => reading.mock.calls.length > 0, 60_000);
    let catchUp = (): void => {};
    await keepAway(async () => {
      closeOnce();
      catchUp = lag(reader);
    });

    const question = makeGate();
    const sync = reader.sync.bind(reader);
    const asking = vi.spyOn(reader, 'sync').mockImplementationOnce(async (path?: string, options?: CallOptions) => {
      await question.promise;
      catchUp();
      return sync(path, options);
    });
    await world.until(() => asking.mock.calls.length > 0, 60_000);
    refusal.open();
    await world.sleep(2000);
    expect([reader.state, cache.stale, reading.mock.calls.length]).toEqual(['connected', true, 1]);
    expect(shown(cache)).toEqual(['/t 19', '/t/a old']);
    question.open();
    await world.until(() => !cache.stale, 60_000);
    expect(shown(cache)).toEqual(['/t 19', '/t/a new']);
  }));

test('a server without a quorum does not show whether the service has gone back', () =>
  onStage(async ({ world, writer, reader, cache, keepAway, closeOnce }) => {
    let catchUp = (): void => {};
    await keepAway(async () => {
      await writer.set('/t/a', 'new');
      closeOnce();
      catchUp = lag(reader);
    });
    const asking = vi.spyOn(reader, 'sync').mockImplementationOnce(async () => {
      catchUp();
      throw new NotReadOnlyError({ operation: 'sync', path: '/t' });
    });
    await world.until(() => !cache.stale, 60_000);
    expect(asking).toHaveBeenCalledTimes(2);
    expect(shown(cache)).toEqual(['/t 19', '/t/a new']);
  }));

test('a cache that is closed while it checks whether the service has gone back ends normally', () =>
  onStage(async ({ world, server, reader, cache, keepAway, closeOnce }) => {
    let catchUp = (): void => {};
    const { asked } = onSync(reader, () => {
      catchUp();
      world.network.partition([server.host], ['reader']);
    });
    const change = cache.changes().next();
    await keepAway(async () => {
      closeOnce();
      catchUp = lag(reader);
    });
    await world.until(() => asked.length > 0, 60_000);
    const closed = cache.close();
    await expect(asked[0]).rejects.toThrow(AbortedError);
    expect(await change).toEqual({ done: true, value: undefined });
    world.network.heal();
    await closed;
    await expect(cache.waitFor(0n)).rejects.toThrow('the cache is closed');
    expect(shown(cache)).toEqual(['/t 19', '/t/a old']);
  }));
