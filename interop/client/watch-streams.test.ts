import {
  type Client,
  connect,
  type Observation,
  type Observed,
  text,
  type WatchStream,
  type WatchStreamEvent,
} from '@meerkat/client';
import { TcpProxy } from '@meerkat/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS, ServerProcess } from '../harness/server-process.ts';

// Servers up to 3.8 keep one watch mode per connection and path: the streams here share znodes with other watches.

for (const kind of SERVER_KINDS) {
  describeWith(kind === 'apache' ? ['apache'] : [], `the client's watch streams and observations (${kind})`, () => {
    let server: ServerProcess;
    let proxy: TcpProxy;
    let client: Client;
    /** Bypasses the proxy. */
    let writer: Client;

    beforeAll(async () => {
      server = await ServerProcess.start(kind);
      proxy = await TcpProxy.start({ target: server.port });
    });
    afterAll(async () => {
      await proxy.stop();
      await server.dispose();
    });
    beforeEach(async () => {
      client = await connect({ servers: proxy.connectString, backOff: { minMs: 1, maxMs: 5 } });
      writer = await connect(`127.0.0.1:${server.port}`);
    });
    afterEach(async () => {
      for (const name of (await writer.children('/')).children) {
        if (name !== 'zookeeper') await writer.deleteRecursive(`/${name}`);
      }
      await client.close();
      await writer.close();
    });

    const cut = () => {
      for (const connection of proxy.connections) connection.cut();
    };

    test('a plain and a recursive stream report the same changes', async () => {
      const plain = client.watch('/a');
      const recursive = client.watch('/a', { recursive: true });
      await Promise.all([plain.ready, recursive.ready]);
      expect([plain.mode, recursive.mode]).toEqual(['persistent', 'persistent']);

      await writer.create('/a', 'one');
      await writer.create('/a/b');
      await writer.set('/a/b', 'two');
      await writer.set('/a', 'three');
      await writer.delete('/a/b');
      await writer.delete('/a');

      expect(await take(plain, 5)).toEqual(['created /a', 'children /a', 'changed /a', 'children /a', 'deleted /a']);
      expect(await take(recursive, 6)).toEqual([
        'created /a',
        'created /a/b',
        'changed /a/b',
        'changed /a',
        'deleted /a/b',
        'deleted /a',
      ]);
    });

    test('one-shot watches set while the last stream on their znode is closed fire', async () => {
      await writer.create('/a');
      for (const recursive of [false, true]) {
        const stream = client.watch('/a', { recursive });
        await stream.ready;
        const [data, child] = [client.get('/a', { watch: true }), client.children('/a', { watch: true })];
        await stream.close();
        const { changed } = await data;
        const { changed: childrenChanged } = await child;

        await writer.create('/a/b');
        await writer.set('/a', 'two');
        expect([(await childrenChanged).type, (await changed).type]).toEqual(['children', 'changed']);
        await writer.delete('/a/b');
      }
    });

    test('one-shot watches on a watched znode fire too, and do not end a stream', async () => {
      await writer.create('/a');
      const streams = [client.watch('/a'), client.watch('/a', { recursive: true })];
      await Promise.all(streams.map(({ ready }) => ready));
      const read = await client.get('/a', { watch: true });
      const listed = await client.children('/a', { watch: true });

      await writer.set('/a', 'one');
      expect(await read.changed).toMatchObject({ type: 'changed', path: '/a' });
      await writer.create('/a/b');
      expect(await listed.changed).toMatchObject({ type: 'children', path: '/a' });
      await writer.set('/a', 'two');

      expect(await Promise.all(streams.map((stream) => take(stream, 3)))).toEqual([
        ['changed /a', 'children /a', 'changed /a'],
        ['changed /a', 'created /a/b', 'changed /a'],
      ]);
    });

    test('closing a stream does not end others on its znode', async () => {
      const [first, second, third] = [client.watch('/a'), client.watch('/a'), client.watch('/a', { recursive: true })];
      await Promise.all([first.ready, second.ready, third.ready]);

      await first.close();
      await writer.create('/a');
      expect(await take(second, 1)).toEqual(['created /a']);
      await writer.set('/a', 'one');

      expect(await take(third, 2)).toEqual(['created /a', 'changed /a']);
    });

    test.each([1, 2, 3])(
      'reading each changed znode, and the whole tree after a gap, yields the current tree (seed %i)',
      async (seed) => {
        const random = makeRandom(seed);
        await writer.create('/t');
        const stream = client.watch('/t', { recursive: true });
        await stream.ready;
        const seen = new Map<string, string>();
        let wake = (): void => {};
        const listening = (async () => {
          for await (const event of stream) {
            const paths = event.type === 'gap' ? ['/t', ...seen.keys()] : [event.path];
            for (const path of paths) await look(client, path, seen, event.type === 'gap');
            wake();
          }
        })();

        for (let round = 0; round < 20; round++) {
          await Promise.all(Array.from({ length: random(15) }, (_, i) => change(writer, random, `${round}-${i}`)));
          if (random(4) === 0) cut();
        }
        const whole = new Map<string, string>();
        await look(writer, '/t', whole, true);

        while (!isSame(seen, whole)) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
        await stream.close();
        await listening;
      },
    );

    test('an observation converges to the newest value, across cuts and a restart', async () => {
      await using observation = client.observe('/a', text);
      expect(await observation.ready).toMatchObject({ exists: false });

      await writer.create('/a', '0');
      for (let i = 1; i <= 50; i++) {
        await writer.set('/a', `${i}`);
        if (i % 10 === 0) cut();
      }
      await becomes(observation, (value) => value?.data === '50');
      await server.restart();
      await writer.whenConnected();
      await writer.delete('/a', { timeoutMs: 30_000 });
      await becomes(observation, (value) => value?.exists === false);
    });
  });
}

/** The next events as text; then the stream is closed. */
async function take(stream: WatchStream, count: number): Promise<string[]> {
  const received: string[] = [];
  for await (const event of stream) {
    received.push(describe(event));
    if (received.length === count) break;
  }
  return received;
}

function describe(event: WatchStreamEvent): string {
  return event.type === 'gap' ? `gap ${event.reason}` : `${event.type} ${event.path}`;
}

async function becomes<T>(observation: Observation<T>, fits: (value: Observed<T> | null) => boolean): Promise<void> {
  while (!fits(observation.current)) await observation.changed();
}

/** Reads the current state of a znode, and optionally of its descendants. */
async function look(client: Client, path: string, seen: Map<string, string>, withChildren: boolean): Promise<void> {
  for (;;) {
    try {
      const { data } = await client.get(path, { codec: text });
      seen.set(path, data);
      if (!withChildren) return;
      for (const name of (await client.children(path)).children) await look(client, `${path}/${name}`, seen, true);
      return;
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'NONODE') {
        seen.delete(path);
        return;
      }
      await client.whenConnected();
    }
  }
}

function isSame(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && [...one].every(([path, data]) => other.get(path) === data);
}

type Random = (below: number) => number;

/** A random change in a tree of three names and three levels; it may be refused. */
async function change(client: Client, random: Random, data: string): Promise<void> {
  let path = '/t';
  for (let depth = random(3); depth >= 0; depth--) path += `/${'abc'.charAt(random(3))}`;
  const [create, set, remove] = [
    () => client.create(path, data),
    () => client.set(path, data),
    () => client.delete(path),
  ] as const;
  const made = [create, create, set, remove][random(4)]?.();
  await made?.catch((error: { code?: string }) => {
    if (!['NONODE', 'NODEEXISTS', 'NOTEMPTY'].includes(error.code ?? '')) throw error;
  });
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
