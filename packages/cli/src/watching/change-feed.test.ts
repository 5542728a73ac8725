import { type Client, ConnectionLossError, connect, NoAuthError, type WatchStreamEvent } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { ChangeFeed } from './change-feed.ts';

let server: TestServer;
let client: Client;

beforeAll(async () => {
  server = await TestServer.start();
  client = await connect(server.connectString);
});

afterAll(async () => {
  await client.close();
  await server[Symbol.asyncDispose]();
});

beforeEach(async () => {
  vi.restoreAllMocks();
  if ((await client.exists('/w')) !== null) await client.deleteRecursive('/w');
  await client.create('/w', '');
  await client.create('/w/old', 'value');
});

/** A recursive feed of /w whose stream delivers only what the test gives it. */
class Stage {
  readonly #end = new AbortController();
  readonly #rows: string[] = [];
  readonly #waiting: WatchStreamEvent[] = [];
  readonly #done: Promise<void>;
  #wake = (): void => {};
  #onIdle = (): void => {};

  private constructor(onReady: () => void) {
    const stream = {
      ready: Promise.resolve(),
      isOver: false,
      take: () => this.#waiting.shift() ?? null,
      arrival: () => {
        this.#onIdle();
        return new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      },
      async *[Symbol.asyncIterator]() {},
      async [Symbol.asyncDispose]() {},
    };
    vi.spyOn(client, 'watch').mockReturnValue(stream as never);
    const options = { isRecursive: true, readsValues: true, signal: this.#end.signal, onReady };
    this.#done = this.#collect(new ChangeFeed(client, '/w', options));
    this.#end.signal.addEventListener('abort', () => {
      stream.isOver = true;
      this.#wake();
    });
  }

  static async open(): Promise<Stage> {
    return await new Promise((resolve) => {
      const stage = new Stage(() => setImmediate(() => resolve(stage)));
    });
  }

  /** @returns the rows that it causes, without those of gaps */
  async deliver(...events: readonly WatchStreamEvent[]): Promise<readonly string[]> {
    const idle = new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
    this.#waiting.push(...events);
    this.#wake();
    await idle;
    return this.#rows.splice(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#done;
  }

  async #collect(feed: ChangeFeed): Promise<void> {
    for await (const { kind, path } of feed.changes()) if (kind !== 'gap') this.#rows.push(`${kind} ${path}`);
  }
}

const GAP: WatchStreamEvent = { type: 'gap', reason: 'reconnected', missed: null };

test('a comparison behind a gap reports what was created, changed and deleted meanwhile', async () => {
  await using stage = await Stage.open();
  expect(await stage.deliver(GAP)).toEqual([]);
  await client.create('/w/new', '');
  await client.set('/w/old', 'other');
  expect(await stage.deliver(GAP)).toEqual(['created /w/new', 'changed /w/old']);
  await client.delete('/w/new');
  expect(await stage.deliver(GAP)).toEqual(['deleted /w/new']);
});

test('the next comparison reports what an interrupted one has not reached', async () => {
  await using stage = await Stage.open();
  await client.create('/w/one', '');
  const about = { operation: 'children', path: '/w' };
  vi.spyOn(client, 'children').mockRejectedValueOnce(new ConnectionLossError(about));
  expect(await stage.deliver(GAP)).toEqual([]);
  await client.create('/w/two', '');
  expect(await stage.deliver(GAP)).toEqual(['created /w/one', 'created /w/two']);
  await client.create('/w/three', '');
  expect(await stage.deliver(GAP)).toEqual(['created /w/three']);
});

test('what was there before the first complete reading is not reported as created', async () => {
  const about = { operation: 'children', path: '/w' };
  vi.spyOn(client, 'children').mockRejectedValueOnce(new ConnectionLossError(about));
  await using stage = await Stage.open();
  expect(await stage.deliver(GAP)).toEqual([]);
  await client.create('/w/new', '');
  expect(await stage.deliver(GAP)).toEqual(['created /w/new']);
});

test('a creation is reported once, also when the znode could not be read at first', async () => {
  await using stage = await Stage.open();
  await client.create('/w/new', '');
  vi.spyOn(client, 'get').mockRejectedValueOnce(new NoAuthError({ operation: 'get', path: '/w/new' }));
  const created: WatchStreamEvent = { type: 'created', path: '/w/new', zxid: null };
  expect(await stage.deliver(created)).toEqual(['created /w/new']);
  expect(await stage.deliver(GAP)).toEqual([]);
  await client.delete('/w/new');
  await client.create('/w/new', '');
  expect(await stage.deliver(GAP)).toEqual(['changed /w/new']);
});
