import { type Client, connect, json, text } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  Barrier,
  Configuration,
  CountDownLatch,
  DoubleBarrier,
  Election,
  fence,
  Group,
  type Layout,
  Migrations,
  Mutex,
  NotHeldError,
  PriorityLock,
  Queue,
  type QueueLayout,
  ReadWriteLock,
  Semaphore,
} from './index.ts';
import { inWorld } from './testing/in-world.ts';

/*
 * The contents of error messages: what was attempted, on what, what prevented it, and what was wrong with the
 * arguments.
 */

let server: TestServer;
let client: Client;

beforeAll(async () => {
  server = await TestServer.start();
  client = await connect(server.connectString);
});

afterAll(async () => {
  await client.close();
  await server.stop();
});

/** Of the virtual clock. */
const PATIENCE_MS = 500;

describe('a wait that timed out', () => {
  test("for a lock or leadership names its holder and the holder's session", () =>
    inWorld(2, async ([one, two]) => {
      const lock = await new Mutex(one.client, '/m').acquire();
      const leader = await new Election(one.client, '/e').campaign();
      const session = `(session 0x${one.client.session!.id.toString(16)})`;
      const call = { timeoutMs: PATIENCE_MS };
      expect(await failureOf(new Mutex(two.client, '/m').acquire(call))).toMatchObject({
        message: `Mutex.acquire /m: timeoutMs has passed: ${lock.path} ${session} holds it (TIMEOUT)`,
        outcome: 'not-applied',
      });
      expect(await failureOf(new Election(two.client, '/e').campaign(call))).toMatchObject({
        message: `Election.campaign /e: timeoutMs has passed: ${leader.path} ${session} leads (TIMEOUT)`,
      });
    }));

  test('for a contended lock names its holder and the waiters ahead', () =>
    inWorld(3, async ([one, two, three], { sleep }) => {
      const lock = await new Mutex(one.client, '/m').acquire();
      const waiting = new Mutex(two.client, '/m').acquire();
      await sleep(100);
      const [, between] = await new Mutex(two.client, '/m').contenders();
      const session = `(session 0x${two.client.session!.id.toString(16)})`;
      const { message } = await failureOf(new Mutex(three.client, '/m').acquire({ timeoutMs: PATIENCE_MS }));
      expect(message).toContain(`${lock.path} holds it, and ${between!.path} ${session} stands before us`);
      await lock.release();
      await (await waiting).release();
    }));

  test('for a lease names the holders', () =>
    inWorld(1, async ([one]) => {
      const semaphore = new Semaphore(one.client, '/s', { leasesMax: 1 });
      const lease = await semaphore.acquire();
      const { message } = await failureOf(semaphore.acquire({ timeoutMs: PATIENCE_MS }));
      expect(message).toContain(`Semaphore.acquire /s: timeoutMs has passed: all leases are held: ${lease.path}`);
    }));

  test('for a priority lock names its holder', () =>
    inWorld(2, async ([one, two]) => {
      const lock = await new PriorityLock(one.client, '/p').acquire();
      const session = `(session 0x${one.client.session!.id.toString(16)})`;
      const call = { timeoutMs: PATIENCE_MS };
      expect(await failureOf(new PriorityLock(two.client, '/p').acquire(call))).toMatchObject({
        message: `PriorityLock.acquire /p: timeoutMs has passed: ${lock.path} ${session} holds it (TIMEOUT)`,
        outcome: 'not-applied',
      });
    }));

  test('without a reply from the service claims nothing about others', () =>
    inWorld(1, async ([one], { cut }) => {
      const { client } = one;
      cut('host1');
      const call = { timeoutMs: PATIENCE_MS };
      const lock = new PriorityLock(client, '/p');
      const semaphore = new Semaphore(client, '/s', { leasesMax: 1 });
      const takes = [lock.acquire(call), lock.tryAcquire(call), semaphore.acquire(call), semaphore.tryAcquire(call)];
      for (const { message } of await Promise.all(takes.map(failureOf))) {
        expect(message).toMatch(/timeoutMs has passed \(TIMEOUT\)$/);
      }
      expect(client.state).toBe('connected');
    }));

  test('for an item, or for room, reports that nothing was taken or put', () =>
    inWorld(1, async ([one]) => {
      const queue = new Queue(one.client, '/q', { codec: text, itemsMax: 1 });
      expect(await failureOf(queue.take({ timeoutMs: PATIENCE_MS }))).toMatchObject({
        message: 'Queue.take /q: timeoutMs has passed: there was no free item (TIMEOUT)',
        outcome: 'not-applied',
      });
      await queue.put('one');
      expect(await failureOf(queue.put('two', { timeoutMs: PATIENCE_MS }))).toMatchObject({
        message: 'Queue.put /q: timeoutMs has passed: there was no room: itemsMax is 1 (TIMEOUT)',
        outcome: 'not-applied',
      });
    }));

  test('for a barrier or a latch reports that nothing was changed', () =>
    inWorld(1, async ([one]) => {
      const barrier = new Barrier(one.client, '/b');
      await barrier.set();
      const call = { timeoutMs: PATIENCE_MS };
      expect(await failureOf(barrier.wait(call))).toMatchObject({
        message: 'Barrier.wait /b: timeoutMs has passed: the barrier stands (TIMEOUT)',
        outcome: 'not-applied',
      });
      expect(await failureOf(new CountDownLatch(one.client, '/l', 2).wait(call))).toMatchObject({
        message: 'CountDownLatch.wait /l: timeoutMs has passed: it is not counted down (TIMEOUT)',
        outcome: 'not-applied',
      });
    }));

  test('without a connection says so, and claims nothing about others', () =>
    inWorld(2, async ([one, two], { cut }) => {
      await new Mutex(one.client, '/m').acquire();
      const suspended = new Promise<void>((resolve) => {
        two.client.onState(({ state }) => {
          if (state === 'suspended') resolve();
        });
      });
      cut(two.host);
      await suspended;
      const { message } = await failureOf(new Mutex(two.client, '/m').acquire({ timeoutMs: 10 }));
      expect(message).toBe('Mutex.acquire /m: timeoutMs has passed: the client is suspended (TIMEOUT)');
    }));
});

test('a leadership fences a store, and the error names its znode', async () => {
  const written: string[] = [];
  const store = { write: async (key: string) => written.push(key) > 0 };
  const path = await new Election(client, '/fenced').run(async (leadership) => {
    await fence(leadership, store).write('key', 'value');
    expect(leadership.isHeld).toBe(true);
    await leadership.holding.release();
    expect(leadership.isHeld).toBe(false);
    const error = await failureOf(fence(leadership, store).write('late', 'value'));
    expect(error).toBeInstanceOf(NotHeldError);
    expect(error.message).toBe(`${leadership.path} is no longer held: nothing was written`);
    return leadership.path;
  });
  expect(path).toMatch(/^\/fenced\//);
  expect(written).toEqual(['key']);
});

test('an item of a queue fences a store', async () => {
  const queue = new Queue(client, '/items', { codec: text });
  await queue.put('a');
  await using item = await queue.take();
  const refusing = { write: async () => false };
  const error = await failureOf(fence(item, refusing).write('key', 'value'));
  expect(error.message).toContain(`${item.path} is no longer held: the store has seen a larger token`);
});

test('the loss of a lock is attributed to a margin that leaves nothing of the session', async () => {
  await using lock = await new Mutex(client, '/margin', { marginMs: 10_000_000 }).acquire();
  expect(lock.isHeld).toBe(false);
  const { timeoutMs } = client.session ?? { timeoutMs: 0 };
  expect(String(lock.signal.reason)).toContain(
    `marginMs, 10000000, leaves nothing of the session timeout, ${timeoutMs} ms`,
  );
});

test('an unknown layout is refused at once', () => {
  // As read from a configuration file.
  const layout: string = 'Kazoo';
  const message = "there is no layout 'Kazoo' here; there are 'curator', 'kazoo'";
  expect(() => new Mutex(client, '/x', { layout: layout as Layout })).toThrow(message);
  expect(() => new Election(client, '/x', { layout: layout as Layout })).toThrow(message);
  expect(() => new Semaphore(client, '/x', { leasesMax: 1, layout: layout as Layout })).toThrow(message);
  expect(() => new ReadWriteLock(client, '/x', { layout: layout as Layout })).toThrow(message);
  expect(() => new DoubleBarrier(client, '/x', 2, { layout: layout as Layout })).toThrow(message);
  expect(() => new Queue(client, '/x', { layout: layout as QueueLayout })).toThrow("'kazoo-locking'");
  expect(() => new Group(client, '/x', { layout: layout as Layout })).toThrow("'kazoo-shallow'");
});

test('an unknown election style is refused at once', () => {
  const style: string = 'Selector';
  expect(() => new Election(client, '/x', { style: style as 'selector' })).toThrow("there is no style 'Selector'");
});

test('the error of a guarded write whose reply is lost says what was to be written', () =>
  inWorld(1, async ([one], { cut }) => {
    const lock = await new Mutex(one.client, '/m').acquire();
    const writing = failureOf(lock.guarded.create('/report', 'x'));
    cut(one.host);
    expect((await writing).message).toMatch(/^transaction \/report: /);
  }));

test('a guarded write that waited for a connection until the session was over reports NotHeldError', () =>
  inWorld(1, async ([one], { cut }) => {
    const lock = await new Mutex(one.client, '/m').acquire();
    const suspended = new Promise<void>((resolve) => {
      one.client.onState(({ state }) => {
        if (state === 'suspended') resolve();
      });
    });
    cut(one.host);
    await suspended;
    expect(lock.isHeld).toBe(true);
    const error = await failureOf(lock.guarded.create('/report', 'x'));
    expect(error).toBeInstanceOf(NotHeldError);
    expect(error).toMatchObject({
      message: `${lock.path} is no longer held: the session is over`,
      cause: { code: 'SESSIONLOST', outcome: 'not-applied', path: '/report' },
    });
  }));

test('the error for a value that the schema refuses does not claim that it is in the znode', async () => {
  const schema = {
    '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [{ message: 'port is missing' }] }) },
  } as const;
  const error = await failureOf(new Configuration(client, '/settings', { codec: json<unknown>(schema) }).set({}));
  expect(error.message).toBe('Configuration.set /settings: the codec refuses the data: port is missing (DECODEFAILED)');
});

test('a rollback without an earlier publication says so', async () => {
  const settings = new Configuration(client, '/never', { codec: text });
  await expect(settings.rollback()).rejects.toThrow('there is nothing before the first version of /never');
  await settings.set('first');
  await expect(settings.rollback()).rejects.toThrow('there is nothing before the first version of /never; kept are: 0');
});

test('a failed migration is reported by its number, and its operations are numbered within it', async () => {
  const migrations = new Migrations(client);
  const error = await failureOf(
    migrations.apply('shop', [[{ kind: 'create', path: '/shop' }], [{ kind: 'create', path: '/no/parent' }]]),
  );
  expect(error.message).toContain(
    'Migrations.apply (migration 2 of shop) /no/parent: nothing of it was done: operation 1 of 1, create /no/parent: ',
  );
  expect(error).toMatchObject({ index: 0, operations: [{ path: '/no/parent' }] });
});

async function failureOf(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Error) return error;
    throw error;
  }
  throw new Error('it should have failed');
}
