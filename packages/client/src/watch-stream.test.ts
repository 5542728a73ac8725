import { TestServer } from '@meerkat/testing';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { Client } from './client.ts';
import { connect } from './connect.ts';
import { AbortedError, AuthFailedError, BadArgumentsError, ClosedError, NoAuthError } from './errors.ts';
import { FakeWatchPorts } from './testing/fake-watch-ports.ts';
import { drainMicrotasks } from './testing/virtual-surroundings.ts';
import type { WatchGap, WatchStreamEvent } from './watch-buffer.ts';
import { WatchStream } from './watch-stream.ts';

describe('on a scripted session', () => {
  test('ready resolves once the watch is armed', async () => {
    const ports = new FakeWatchPorts();
    const stream = new WatchStream(ports, '/a', { recursive: true });
    expect(stream.mode).toBeNull();
    expect(ports.watch).toMatchObject({ path: '/a', isRecursive: true });

    ports.watch.arm();
    await stream.ready;

    expect(stream.mode).toBe('persistent');
  });

  test('events come in order, whether or not they are awaited', async () => {
    const { ports, stream } = await makeArmed('/a');
    const iterator = stream[Symbol.asyncIterator]();
    const waiting = [iterator.next(), iterator.next()];

    for (const type of ['created', 'changed', 'children', 'deleted'] as const) ports.fire(type, '/a');

    const values = [...(await Promise.all(waiting)), await iterator.next(), await iterator.next()];
    expect(values.map(({ value }) => value?.type)).toEqual(['created', 'changed', 'children', 'deleted']);
  });

  test('events that have arrived may be taken without waiting', async () => {
    const { ports, stream } = await makeArmed('/a');
    expect(stream.take()).toBeNull();
    let hasArrived = false;
    const arrival = stream.arrival().then(() => {
      hasArrived = true;
    });
    await drainMicrotasks();
    expect(hasArrived).toBe(false);

    for (const type of ['created', 'deleted'] as const) ports.fire(type, '/a');
    ports.reconnect();

    expect([stream.take(), stream.take(), stream.take(), stream.take()].map((event) => event?.type ?? null)).toEqual([
      'created',
      'deleted',
      'gap',
      null,
    ]);
    await arrival;
    ports.fire('created', '/a');
    await stream.arrival();
    expect(stream.isOver).toBe(false);
    void stream.close();
    expect(stream.isOver).toBe(true);
    await stream.arrival();
    expect(stream.take()).toBeNull();
  });

  test('paths are relative to the chroot', async () => {
    const ports = new FakeWatchPorts('/app');
    const stream = new WatchStream(ports, '/', { recursive: true });
    expect(ports.watch.path).toBe('/app');
    ports.watch.arm();

    ports.fire('created', '/app/x', 5n);

    expect(await take(stream, 1)).toEqual([{ type: 'created', path: '/x', zxid: 5n }]);
  });

  test('a gap comes after each rearming, and shows whether there is a new session', async () => {
    const { ports, stream } = await makeArmed('/a');
    ports.fire('changed', '/a');
    ports.reconnect();
    ports.fire('changed', '/a');
    ports.reconnect(false);

    const events = await take(stream, 4);

    expect(events.map((event) => (event.type === 'gap' ? event.reason : event.type))).toEqual([
      'changed',
      'reconnected',
      'changed',
      'new-session',
    ]);
  });

  test('a slow consumer gets a gap in place of dropped events', async () => {
    const { ports, stream } = await makeArmed('/a', 2);
    for (const zxid of [1n, 2n, 3n, 4n, 5n]) ports.fire('changed', '/a', zxid);

    expect(await take(stream, 3)).toEqual([
      { type: 'gap', reason: 'overflow', missed: 3 },
      { type: 'changed', path: '/a', zxid: 4n },
      { type: 'changed', path: '/a', zxid: 5n },
    ]);
  });

  test('leaving the loop removes the watch', async () => {
    const { ports, stream } = await makeArmed('/a');
    ports.fire('changed', '/a');

    for await (const event of stream) {
      expect(event.type).toBe('changed');
      break;
    }

    expect(ports.watch.isClosed).toBe(true);
  });

  test('disposing the stream removes the watch and ends a waiting loop', async () => {
    const { ports, stream } = await makeArmed('/a');
    const ended = take(stream, 1);

    await stream[Symbol.asyncDispose]();

    expect(await ended).toEqual([]);
    expect(ports.watch.isClosed).toBe(true);
  });

  test('an aborted signal removes the watch and ends the loop', async () => {
    const controller = new AbortController();
    const ports = new FakeWatchPorts();
    const stream = new WatchStream(ports, '/a', { signal: controller.signal });
    ports.watch.arm();
    await stream.ready;
    const ended = take(stream, 1);

    controller.abort();

    expect(await ended).toEqual([]);
    expect(ports.watch.isClosed).toBe(true);
  });

  test('a signal that was aborted before ends the loop at once', async () => {
    const ports = new FakeWatchPorts();
    const stream = new WatchStream(ports, '/a', { signal: AbortSignal.abort() });

    expect(await take(stream, 1)).toEqual([]);
    await expect(stream.ready).rejects.toBeInstanceOf(AbortedError);
  });

  test('a stream that is closed before it is armed cancels arming', async () => {
    const ports = new FakeWatchPorts();
    const stream = new WatchStream(ports, '/a');

    await stream.close();

    await expect(stream.ready).rejects.toBeInstanceOf(AbortedError);
    expect(await take(stream, 1)).toEqual([]);
  });

  test('a stream that is closed while another one probes for addWatch requests no watch', async () => {
    const ports = new FakeWatchPorts();
    const first = new WatchStream(ports, '/a');
    const second = new WatchStream(ports, '/b');
    await second.close();

    ports.watch.arm();
    await first.ready;
    await drainMicrotasks();

    expect(ports.watches.map(({ path }) => path)).toEqual(['/a']);
  });

  test('buffered events are dropped by close', async () => {
    const { ports, stream } = await makeArmed('/a');
    ports.fire('changed', '/a');

    await stream.close();

    expect(await take(stream, 1)).toEqual([]);
  });

  test('a second consumer is refused, because it would take events from the first', async () => {
    const { stream } = await makeArmed('/a');
    stream[Symbol.asyncIterator]();

    expect(() => stream[Symbol.asyncIterator]()).toThrow(/the watch of \/a has a consumer already/);
  });

  test('the loop ends when the client is closed, after earlier events', async () => {
    const { ports, stream } = await makeArmed('/a');
    ports.fire('changed', '/a');
    ports.end('closed');

    expect((await take(stream, 2)).map(({ type }) => type)).toEqual(['changed']);
  });

  test('the loop throws when the credentials are refused, after earlier events', async () => {
    const { ports, stream } = await makeArmed('/a');
    ports.fire('changed', '/a');
    ports.end('auth-failed');
    const iterator = stream[Symbol.asyncIterator]();

    expect((await iterator.next()).value?.type).toBe('changed');
    await expect(iterator.next()).rejects.toBeInstanceOf(AuthFailedError);
    expect((await iterator.next()).done).toBe(true);
  });

  test('a watch that cannot be armed rejects ready, and throws in the loop', async () => {
    const ports = new FakeWatchPorts();
    const stream = new WatchStream(ports, '/a');
    ports.watch.refuse(new NoAuthError({ operation: 'watch', path: '/a' }));

    await expect(stream.ready).rejects.toBeInstanceOf(NoAuthError);
    await expect(take(stream, 1)).rejects.toBeInstanceOf(NoAuthError);
  });

  test.each([
    ['an illegal path', 'a', {}],
    ['no room for an event', '/a', { bufferMax: 0 }],
    ['a buffer of no number', '/a', { bufferMax: Number.NaN }],
  ])('%s is refused without an exception of watch itself', async (_name, path, options) => {
    const stream = new WatchStream(new FakeWatchPorts(), path, options);

    await expect(stream.ready).rejects.toBeInstanceOf(BadArgumentsError);
    await expect(take(stream, 1)).rejects.toBeInstanceOf(BadArgumentsError);
  });

  test('the type of an event determines its other fields', () => {
    expectTypeOf<Extract<WatchStreamEvent, { type: 'gap' }>>().toEqualTypeOf<WatchGap>();
    expectTypeOf<Extract<WatchStreamEvent, { type: 'created' }>>().toHaveProperty('path');
    expectTypeOf<WatchStream>().toExtend<AsyncIterable<WatchStreamEvent> & AsyncDisposable>();
  });
});

describe('on a server', () => {
  test('a recursive watch reports the subtree, and nothing else', async () => {
    await using server = await TestServer.start();
    await using client = await connect(server.connectString);
    await client.create('/a');
    const stream = client.watch('/a', { recursive: true });
    await stream.ready;

    await client.create('/a/b');
    await client.create('/beside');
    await client.set('/a/b', 'x');
    await client.delete('/a/b');

    expect(await take(stream, 3)).toMatchObject([
      { type: 'created', path: '/a/b' },
      { type: 'changed', path: '/a/b' },
      { type: 'deleted', path: '/a/b' },
    ]);
  });

  test('leaving the loop removes the watch from the server', async () => {
    await using server = await TestServer.start();
    await using client = await connect(server.connectString);
    const stream = client.watch('/a');
    await stream.ready;
    expect(await client.checkWatches('/a', 'persistent')).toBe(true);

    await stream.close();

    expect(await client.checkWatches('/a', 'any')).toBe(false);
  });

  test('watches on the same znode do not affect each other', async () => {
    await using server = await TestServer.start();
    await using client = await connect(server.connectString);
    const streams = [client.watch('/a'), client.watch('/a'), client.watch('/a', { recursive: true })];
    for (const stream of streams) await stream.ready;
    await streams[0]?.close();

    await client.create('/a', 'x');

    for (const stream of streams.slice(1)) expect(await take(stream, 1)).toMatchObject([{ type: 'created' }]);
  });

  test('after a restart of the server there is a gap, and then all events', async () => {
    await using server = await TestServer.start();
    await using writer = await connect(server.connectString);
    await using client = await connect(server.connectString);
    const events = collect(client.watch('/', { recursive: true }));
    await events.stream.ready;
    await writer.create('/before');
    await events.until(({ type }) => type === 'created');

    await server.restart();
    await events.until((event) => event.type === 'gap' && event.reason === 'reconnected');
    await writer.create('/after');

    expect(await events.until((event) => event.type === 'created' && event.path === '/after')).toBeDefined();
  });

  test('after an expiry the watch is armed in the new session, and the gap shows that', async () => {
    await using server = await TestServer.start();
    await using writer = await connect(server.connectString);
    await using client = await connect(server.connectString);
    const events = collect(client.watch('/', { recursive: true }));
    await events.stream.ready;

    await server.expireSession(sessionIdOf(client));
    await events.until((event) => event.type === 'gap' && event.reason === 'new-session');
    await writer.create('/after');

    expect(await events.until(({ type }) => type === 'created')).toMatchObject({ path: '/after' });
  });

  test('a watch stays when the recursive one ends that covered it before the modes were known', async () => {
    await using server = await TestServer.start();
    await using writer = await connect(server.connectString);
    await using client = await connect(server.connectString);
    await writer.create('/a');
    const recursive = await watchAcrossRestart(server, client);

    const plain = collect(client.watch('/a'));
    await plain.stream.ready;
    await recursive.stream.close();
    await writer.set('/a', 'x');

    expect(await plain.until(({ type }) => type === 'changed')).toMatchObject({ path: '/a' });
  });

  test('a watch that is armed as the recursive one ends is still notified of children', async () => {
    await using server = await TestServer.start();
    await using writer = await connect(server.connectString);
    await using client = await connect(server.connectString);
    await writer.create('/a');
    const recursive = await watchAcrossRestart(server, client);

    const plain = collect(client.watch('/a'));
    await recursive.stream.close();
    await plain.stream.ready;
    await writer.create('/a/b');

    expect(await plain.until(({ type }) => type === 'children')).toMatchObject({ path: '/a' });
  });

  test('a watch on a closed client fails', async () => {
    await using server = await TestServer.start();
    const client = await connect(server.connectString);
    await client.close();
    const stream = client.watch('/a');

    await expect(stream.ready).rejects.toBeInstanceOf(ClosedError);
    expect(await take(stream, 1)).toEqual([]);
  });

  test('removeWatches ends the loops of the path', async () => {
    await using server = await TestServer.start();
    await using client = await connect(server.connectString);
    const stream = client.watch('/a');
    await stream.ready;
    const ended = take(stream, 1);

    await client.removeWatches('/a', 'any');

    expect(await ended).toEqual([]);
  });
});

async function makeArmed(path: string, bufferMax?: number): Promise<{ ports: FakeWatchPorts; stream: WatchStream }> {
  const ports = new FakeWatchPorts();
  const stream = new WatchStream(ports, path, { bufferMax });
  ports.watch.arm();
  await stream.ready;
  return { ports, stream };
}

/** The next events; fewer when the stream ends before. */
async function take(stream: WatchStream, count: number): Promise<WatchStreamEvent[]> {
  const events: WatchStreamEvent[] = [];
  for await (const event of stream) {
    events.push(event);
    if (events.length === count) break;
  }
  return events;
}

interface Collected {
  readonly stream: WatchStream;
  /** The first matching event, awaited. */
  until(fits: (event: WatchStreamEvent) => boolean): Promise<WatchStreamEvent | undefined>;
}

/**
 * A recursive watch on `/a` across a server restart, after which the client does not know whether the server separates
 * modes.
 */
async function watchAcrossRestart(server: TestServer, client: Client): Promise<Collected> {
  const recursive = collect(client.watch('/a', { recursive: true }));
  await recursive.stream.ready;
  await server.restart();
  await recursive.until((event) => event.type === 'gap' && event.reason === 'reconnected');
  return recursive;
}

/** Takes events until one matches, without leaving the stream. */
function collect(stream: WatchStream): Collected {
  const iterator = stream[Symbol.asyncIterator]();
  return {
    stream,
    async until(fits) {
      for (;;) {
        const { value } = await iterator.next();
        if (value === undefined || fits(value)) return value;
      }
    },
  };
}

function sessionIdOf(client: Client): bigint {
  if (client.session === null) throw new Error('the client has no session');
  return client.session.id;
}
