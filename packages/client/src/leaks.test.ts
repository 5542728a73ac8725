import { getEventListeners } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { TestServer } from '@meerkat/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Client } from './client.ts';
import { ClientSession } from './client-session.ts';
import { type Clock, SYSTEM_CLOCK } from './clock.ts';
import { isConnectedState } from './machine/state.ts';
import { settle } from './options.ts';
import { waitForState } from './states.ts';

/** Maximum of requests in flight. */
const BATCH = 1000;
/** A leak of a few bytes for each of 100,000 requests would exceed this, and so would one watch for each of 50,000. */
const HEAP_BYTES_MAX = 4 * 1024 * 1024;

let server: TestServer;
let session: ClientSession;
let client: Client;

beforeAll(async () => {
  server = await TestServer.start();
  const options = { servers: server.connectString, sessionTimeoutMs: 60_000, clock: COUNTING_CLOCK };
  session = new ClientSession(settle(options), options);
  session.host.start();
  await waitForState(session, isConnectedState, 'connect', {});
  client = new Client(session, '');
  await client.create('/a', 'x');
});
afterAll(async () => {
  await client.close();
  await server.dispose();
});

/** The timers of the client that are running. */
const timers = new Set<object>();

const COUNTING_CLOCK: Clock = {
  ...SYSTEM_CLOCK,
  schedule(delayMs, callback) {
    const timer = {};
    timers.add(timer);
    const cancel = SYSTEM_CLOCK.schedule(delayMs, () => {
      timers.delete(timer);
      callback();
    });
    return () => {
      timers.delete(timer);
      cancel();
    };
  },
};

/** `--expose-gc`, without a separate process. */
const collectGarbage = ((): (() => void) => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
})();

/** The sizes of a client's tables. */
function tables(): Record<string, number> {
  return {
    watches: session.session.watches.size,
    inFlight: session.session.calls.inFlightCount,
    waiting: session.session.calls.waitingCount,
    stateListeners: session.stateListeners.size,
    stallListeners: session.stallListeners.size,
    timers: timers.size,
    watchesOfServer: server.view.watches.count,
  };
}

/** Runs something many times, in batches; then everything must be as after the first tenth. */
async function expectNoLeak(times: number, work: (i: number) => Promise<unknown>): Promise<void> {
  const run = async (from: number, to: number): Promise<void> => {
    for (let start = from; start < to; start += BATCH) {
      await Promise.all(Array.from({ length: BATCH }, (_, i) => work(start + i)));
    }
  };
  const heapBytes = async (): Promise<number> => {
    // References to settled calls are dropped in later turns.
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const warmUp = times / 10;
  await run(0, warmUp);
  const tablesBefore = tables();
  const heapBefore = await heapBytes();
  await run(warmUp, times);
  expect(tables()).toEqual(tablesBefore);
  expect((await heapBytes()) - heapBefore).toBeLessThan(HEAP_BYTES_MAX);
}

describe('there is no leak after', () => {
  test('100,000 requests of every outcome', async () => {
    const { signal } = new AbortController();
    await expectNoLeak(100_000, (i) => {
      switch (i % 8) {
        case 0:
          return client.get('/none').catch(() => {});
        case 1:
          return client.get('/a', { signal });
        case 2:
          return client.exists('/a', { timeoutMs: 60_000 });
        case 3:
          return client.get('/a', { signal: AbortSignal.abort() }).catch(() => {});
        case 4:
          return client.get('/a', { read: 'linearizable' });
        case 5:
          return client.ping();
        case 6:
          return client.whenConnected({ signal, timeoutMs: 60_000 });
        default:
          return client.get('/a');
      }
    });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('50,000 one-shot watches on as many paths that were removed again', async () => {
    await expectNoLeak(50_000, async (i) => {
      const watched = client.exists(`/none-${i}`, { watch: true });
      const removed = client.removeWatches(`/none-${i}`, 'any');
      const { changed } = await watched;
      await removed;
      await changed.catch(() => {});
    });
  });

  test('50,000 abandoned one-shot watches on one path', async () => {
    await expectNoLeak(50_000, async (i) => {
      using found = i % 2 === 0 ? await client.get('/a', { watch: true }) : await client.exists('/a', { watch: true });
      void Promise.race([found.changed, Promise.resolve()]);
    });
    expect(session.session.watches.has('data', '/a')).toBe(false);
  });

  test('one-shot watches that have fired', async () => {
    await expectNoLeak(20_000, async (i) => {
      const watched = client.get('/a', { watch: true });
      if (i % 100 === 99) await client.set('/a', 'x');
      await (await watched).changed;
    });
  });

  test('10,000 streams that were left', async () => {
    await expectNoLeak(10_000, async (i) => {
      await using stream = client.watch(`/a/${i % 500}`, { recursive: i % 2 === 0 });
      await stream.ready;
    });
  });

  test('10,000 requests that waited for a connection and were cancelled', async () => {
    server.pause();
    const controller = new AbortController();
    const given = Array.from({ length: 10_000 }, (_, i) =>
      client.get('/a', i % 2 === 0 ? { signal: controller.signal } : { timeoutMs: 1 }).catch(() => {}),
    );
    controller.abort();
    await Promise.all(given);
    server.resume();
    await client.sync();
    expect(tables()).toMatchObject({ inFlight: 0, waiting: 0, watches: 0 });
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });
});
