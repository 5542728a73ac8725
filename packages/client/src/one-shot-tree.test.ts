import { TestServer } from '@meerkat/testing';
import { describe, expect, test } from 'vitest';
import type { Client } from './client.ts';
import { connect } from './connect.ts';
import { NoAuthError, NodeExistsError, NoNodeError, NotEmptyError } from './errors.ts';
import { OneShotTree } from './one-shot-tree.ts';
import { FakeWatchPorts } from './testing/fake-watch-ports.ts';
import { OldServer } from './testing/old-server.ts';
import { drainMicrotasks } from './testing/virtual-surroundings.ts';
import type { WatchStreamEvent } from './watch-buffer.ts';
import type { WatchStream } from './watch-stream.ts';

// Streams on a service without persistent watches.

test('a service without addWatch is asked once, also by many concurrent callers', async () => {
  await using server = await TestServer.start();
  await using old = await OldServer.start(server.port);
  await using client = await connect(old.connectString);

  const streams = Array.from({ length: 20 }, (_, i) => client.watch(`/${i}`));
  await Promise.all(streams.map(({ ready }) => ready));
  const later = client.withChroot('/app').watch('/later');
  await later.ready;

  expect(new Set([...streams, later].map(({ mode }) => mode))).toEqual(new Set(['one-shot']));
  expect(old.refused).toEqual([ADD_WATCH]);
});

test('the next caller asks again when the previous one was cancelled before there was an answer', async () => {
  await using server = await TestServer.start();
  await using client = await connect(server.connectString);
  const controller = new AbortController();
  const given = client.watch('/a', { signal: controller.signal });
  const other = client.watch('/b');

  controller.abort();
  await other.ready;

  await expect(given.ready).rejects.toMatchObject({ name: 'AbortError' });
  expect(other.mode).toBe('persistent');
});

test('a gap is of a new session also when the connection is lost once more before it is reported', async () => {
  const ports = new FakeWatchPorts();
  ports.answer = () => null;
  const received: string[] = [];
  const sink = {
    onEvent: () => received.push('event'),
    onGap: (reason: string) => received.push(reason),
    onEnd: () => received.push('end'),
  };
  const tree = new OneShotTree(ports, '/a', false, sink, { operation: 'watch', path: '/a' });
  await tree.armed;

  tree.onWatchSuspended();
  ports.sessionId = 2n;
  tree.onWatchRearmed();
  tree.onWatchSuspended();
  tree.onWatchRearmed();
  await drainMicrotasks();

  expect(received).toEqual(['new-session']);
});

describe('a plain watch', () => {
  test('reports the same as a persistent one, with zxids where the Stat has them', async () => {
    await using world = await makeWorld();
    const { writer, client } = world;
    const events = collect(client.watch('/a'));
    await events.stream.ready;

    const received: WatchStreamEvent[] = [];
    for (const change of [
      () => writer.create('/a', 'one'),
      () => writer.set('/a', 'two'),
      () => writer.create('/a/child'),
      () => writer.set('/a/child', 'not told'),
      () => writer.delete('/a/child'),
      () => writer.delete('/a'),
    ]) {
      await change();
      if (change.toString().includes('not told')) continue;
      received.push(await events.next());
    }

    expect(received.map(describeEvent)).toEqual([
      'created /a',
      'changed /a',
      'children /a',
      'children /a',
      'deleted /a',
    ]);
    expect(received.map((event) => (event.type === 'gap' ? null : typeof event.zxid))).toEqual([
      'bigint',
      'bigint',
      'bigint',
      'bigint',
      'object',
    ]);
  });

  test('a znode that is deleted and recreated between two reads is reported as both', async () => {
    await using world = await makeWorld();
    const { writer, client } = world;
    await writer.create('/a');
    const events = collect(client.watch('/a'));
    await events.stream.ready;

    await writer.transaction().delete('/a').create('/a').commit();

    expect([await events.next(), await events.next()].map(describeEvent)).toEqual(['deleted /a', 'created /a']);
  });

  test('changes while disconnected are reported afterwards, and then a gap', async () => {
    await using world = await makeWorld();
    const { old, writer, client } = world;
    await writer.create('/a');
    const events = collect(client.watch('/a'));
    await events.stream.ready;

    // The client cannot reconnect before the change is made: no server answers it.
    old.isOpen = false;
    old.cut();
    await writer.set('/a', 'changed meanwhile');
    old.isOpen = true;

    expect([await events.next(), await events.next()].map(describeEvent)).toEqual(['changed /a', 'gap reconnected']);
  });

  test('a new session is reported as a gap, and changes are reported too', async () => {
    await using world = await makeWorld();
    const { server, old, writer, client } = world;
    await writer.create('/a');
    const events = collect(client.watch('/a'));
    await events.stream.ready;

    old.isOpen = false;
    old.cut();
    await server.expireSession(client.session?.id ?? 0n);
    await writer.delete('/a');
    old.isOpen = true;

    const received = [await events.next(), await events.next()].map(describeEvent);
    expect(received).toEqual(['deleted /a', 'gap new-session']);
  });

  test('a znode whose children may not be listed cannot be watched', async () => {
    await using world = await makeWorld();
    const { writer, client } = world;
    await writer.create('/a', null, { acl: [{ perms: 0, scheme: 'world', id: 'anyone' }] });

    await expect(client.watch('/a').ready).rejects.toBeInstanceOf(NoAuthError);
  });
});

describe('a recursive watch', () => {
  test('reports creations from the top and deletions from the bottom', async () => {
    await using world = await makeWorld();
    const { writer, client } = world;
    await writer.create('/a');
    const events = collect(client.watch('/a', { recursive: true }));
    await events.stream.ready;

    await writer.transaction().create('/a/b').create('/a/b/c').commit();
    const created = [await events.next(), await events.next()];
    await writer.transaction().delete('/a/b/c').delete('/a/b').commit();
    const deleted = [await events.next(), await events.next()];

    expect([...created, ...deleted].map(describeEvent)).toEqual([
      'created /a/b',
      'created /a/b/c',
      'deleted /a/b/c',
      'deleted /a/b',
    ]);
  });

  test('skips children that may not be listed', async () => {
    await using world = await makeWorld();
    const { writer, client } = world;
    await writer.create('/a');
    await writer.create('/a/closed', null, { acl: [{ perms: 0, scheme: 'world', id: 'anyone' }] });
    const events = collect(client.watch('/a', { recursive: true }));
    await events.stream.ready;

    await writer.create('/a/open');

    expect(describeEvent(await events.next())).toBe('created /a/open');
  });

  test('is refused for a subtree with too many znodes for one-shot watches', async () => {
    await using world = await makeWorld();
    const { writer, client } = world;
    await writer.create('/a');
    for (let batch = 0; batch < 10; batch++) {
      await Promise.all(Array.from({ length: 1000 }, (_, i) => writer.create(`/a/${batch * 1000 + i}`)));
    }

    await expect(client.watch('/a', { recursive: true }).ready).rejects.toThrow(/not put on more than 10000 znodes/);
  });

  test('leaves nothing behind in the client when it is closed', async () => {
    await using world = await makeWorld();
    const { old, writer, client } = world;
    for (const path of ['/a', '/a/b', '/a/b/c']) await writer.create(path);
    const stream = client.watch('/a', { recursive: true });
    await stream.ready;

    await stream.close();
    old.cut();
    await client.whenConnected();
    await client.sync();

    // Had the client kept a watch, it would have rearmed it on the new connection.
    expect(old.rearmed).toEqual([]);
  });

  test.each([1, 2, 3, 4, 5, 6])(
    'converges to the actual tree, across lost connections and sessions (seed %i)',
    async (seed) => {
      await using world = await makeWorld();
      const { server, old, writer, client } = world;
      const random = makeRandom(seed);
      await writer.create('/t');
      const picture = new Picture(client, client.watch('/t', { recursive: true }));
      await picture.stream.ready;

      for (let round = 0; round < 30; round++) {
        await Promise.all(Array.from({ length: random(20) }, () => makeChange(writer, random)));
        if (random(6) === 0) old.cut();
        if (random(15) === 0 && client.session !== null) await server.expireSession(client.session.id).catch(ignore);
      }

      await picture.becomes(await readTree(writer, '/t'));
    },
  );
});

const ADD_WATCH = 106;

interface World extends AsyncDisposable {
  readonly server: TestServer;
  readonly old: OldServer;
  /** Connected to the server directly. */
  readonly writer: Client;
  /** Connected to it as to an old one. */
  readonly client: Client;
}

async function makeWorld(): Promise<World> {
  const server = await TestServer.start();
  const old = await OldServer.start(server.port);
  const writer = await connect(server.connectString);
  const client = await connect(old.connectString, { backOff: { minMs: 1, maxMs: 10 } });
  return {
    server,
    old,
    writer,
    client,
    async [Symbol.asyncDispose]() {
      await client.close();
      await writer.close();
      await old[Symbol.asyncDispose]();
      await server.dispose();
    },
  };
}

interface Collected {
  readonly stream: WatchStream;
  next(): Promise<WatchStreamEvent>;
}

/** Takes events without leaving the stream. */
function collect(stream: WatchStream): Collected {
  const iterator = stream[Symbol.asyncIterator]();
  return {
    stream,
    async next() {
      const { value } = await iterator.next();
      if (value === undefined) throw new Error('the stream has ended');
      return value;
    },
  };
}

function describeEvent(event: WatchStreamEvent): string {
  return event.type === 'gap' ? `gap ${event.reason}` : `${event.type} ${event.path}`;
}

/** A listener's copy of the tree: it reads what it is notified of. */
class Picture {
  readonly stream: WatchStream;
  readonly #client: Client;
  /** Paths and data, without the root of the watch. */
  readonly #znodes: Map<string, string> = new Map();
  #onChange: (() => void) | null = null;
  readonly #done: Promise<void>;

  constructor(client: Client, stream: WatchStream) {
    this.#client = client;
    this.stream = stream;
    this.#done = this.#listen();
  }

  /** Resolves once the copy equals this tree. */
  async becomes(tree: ReadonlyMap<string, string>): Promise<void> {
    while (!isSame(tree, this.#znodes)) {
      const changed = new Promise<void>((resolve) => {
        this.#onChange = resolve;
      });
      await Promise.race([changed, this.#done]);
    }
    await this.stream.close();
    await this.#done;
  }

  async #listen(): Promise<void> {
    for await (const event of this.stream) {
      if (event.type === 'gap') continue;
      const { type, path } = event;
      const parent = path.slice(0, path.lastIndexOf('/'));
      if (type === 'deleted') {
        expect([...this.#znodes.keys()].filter((other) => other.startsWith(`${path}/`))).toEqual([]);
        expect(this.#znodes.delete(path)).toBe(true);
      } else {
        expect(this.#znodes.has(path)).toBe(type === 'changed');
        expect(parent === '/t' || this.#znodes.has(parent)).toBe(true);
        this.#znodes.set(path, 'not read yet');
        // In the background: a later event of the same znode corrects a read that it overtakes.
        void this.#read(path);
      }
      this.#onChange?.();
    }
  }

  async #read(path: string): Promise<void> {
    for (;;) {
      try {
        const { data } = await this.#client.get(path);
        if (this.#znodes.has(path)) this.#znodes.set(path, Buffer.from(data).toString());
        this.#onChange?.();
        return;
      } catch (error) {
        if (error instanceof NoNodeError) return;
        await this.#client.whenConnected();
      }
    }
  }
}

function isSame(tree: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return tree.size === other.size && [...tree].every(([path, data]) => other.get(path) === data);
}

async function readTree(client: Client, root: string): Promise<Map<string, string>> {
  const tree = new Map<string, string>();
  const { children } = await client.children(root);
  for (const name of children) {
    const path = `${root}/${name}`;
    const { data } = await client.get(path);
    tree.set(path, Buffer.from(data).toString());
    for (const [below, held] of await readTree(client, path)) tree.set(below, held);
  }
  return tree;
}

type Random = (below: number) => number;

let changes = 0;

/** A random znode in a tree of three names and three levels: few enough to hit the same znode repeatedly. */
async function makeChange(client: Client, random: Random): Promise<void> {
  let path = '/t';
  for (let depth = random(3); depth >= 0; depth--) path += `/${'abc'.charAt(random(3))}`;
  try {
    switch (random(3)) {
      case 0:
        await client.delete(path);
        return;
      case 1:
        await client.set(path, `${++changes}`);
        return;
      default:
        await client.create(path, `${++changes}`);
    }
  } catch (error) {
    const isExpected = [NoNodeError, NodeExistsError, NotEmptyError].some((type) => error instanceof type);
    if (!isExpected) throw error;
  }
}

/** mulberry32 */
function makeRandom(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

function ignore(): void {}
