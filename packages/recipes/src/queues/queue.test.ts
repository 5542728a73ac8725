import {
  type Client,
  ConnectionLossError,
  json,
  NoAuthError,
  NotReadOnlyError,
  SessionLostError,
  ThrottledError,
  text,
} from '@meerkat/client';
import { DEFAULT_LINK } from '@meerkat/simulator';
import { describe, expect, test } from 'vitest';
import { CountDownLatch } from '../barriers/count-down-latch.ts';
import { Fleet } from '../testing/fleet.ts';
import { DelayQueue } from './delay-queue.ts';
import { IdQueue } from './id-queue.ts';
import type { ItemQueue } from './item-queue.ts';
import { PriorityQueue } from './priority-queue.ts';
import { Queue } from './queue.ts';

/** Takes everything that is there, in its order. */
async function drain<T>(queue: ItemQueue<T>): Promise<T[]> {
  const values: T[] = [];
  for (;;) {
    await using item = await queue.tryTake();
    if (item === null) return values;
    values.push(item.value);
    await item.done();
  }
}

function inWorld(program: (fleet: Fleet, client: Client) => Promise<void>): () => Promise<void> {
  return async () => {
    const fleet = new Fleet(1, 1);
    await fleet.run(async () => program(fleet, await fleet.connect()));
  };
}

/** Keeps the first client from the service for so long. */
function cutOff({ world }: Fleet, durationMs: number): void {
  world.network.block('client1', 'zk1');
  world.network.block('zk1', 'client1');
  world.timeline.plan(durationMs, () => world.network.heal());
}

describe('a queue', () => {
  test(
    'gives items in the order in which they were put, in every layout',
    inWorld(async (_, client) => {
      for (const layout of ['curator', 'curator-simple', 'kazoo', 'kazoo-locking'] as const) {
        for (const leases of [true, false]) {
          const queue = new Queue(client, `/${layout}-${leases}`, { codec: text, layout, leases });
          const values = Array.from({ length: 25 }, (_unused, i) => `item ${i}`);
          await Promise.all(values.slice(0, 20).map((value) => queue.put(value)));
          await queue.putAll(values.slice(20));
          expect(await queue.size()).toBe(25);
          expect(await drain(queue), layout).toEqual(values);
          expect(await queue.size()).toBe(0);
        }
      }
    }),
  );

  test(
    'gives an item to nobody else while somebody has it, and at its old place when it is given back',
    inWorld(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.putAll(['a', 'b', 'c']);
      const a = await queue.take();
      const b = await queue.take();
      expect([a.value, b.value, a.isHeld, b.isHeld]).toEqual(['a', 'b', true, true]);
      await a.giveBack();
      expect(a.isHeld).toBe(false);
      expect(a.signal.aborted).toBe(true);
      const again = await queue.take();
      expect(again.value).toBe('a');
      expect(again.token).toBeGreaterThan(a.token);
      await again.done();
      await b.done();
      expect(await drain(queue)).toEqual(['c']);
    }),
  );

  test(
    'has what it has leased, also when the server refuses to read the item at first',
    inWorld(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const get = client.get.bind(client);
      let refusals = 3;
      client.get = ((path: string, options: object) => {
        if (!path.startsWith('/jobs/') || refusals-- <= 0) return get(path, options as never);
        return Promise.reject(new ThrottledError({ operation: 'get', path }));
      }) as typeof client.get;
      const item = await queue.take({ timeoutMs: 10_000 });
      expect(refusals).toBeLessThan(1);
      expect(item.value).toBe('a');
      await item.done();
      expect((await client.children('/jobs-leases')).children).toEqual([]);
    }),
  );

  test(
    'keeps no item from others that the service refuses to show',
    inWorld(async (fleet, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const get = client.get.bind(client);
      client.get = ((path: string, options: object) =>
        path.startsWith('/jobs/')
          ? Promise.reject(new NoAuthError({ operation: 'get', path }))
          : get(path, options as never)) as typeof client.get;
      await expect(queue.take()).rejects.toThrow(NoAuthError);
      client.get = get;
      await fleet.world.sleep(1000);
      expect((await client.children('/jobs-leases')).children).toEqual([]);
      expect(await drain(queue)).toEqual(['a']);
    }),
  );

  test(
    'gives back what the scope is left with, and what the session ends with',
    inWorld(async (fleet, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      {
        await using item = await queue.take();
        expect(item.value).toBe('a');
      }
      const other = await fleet.connect();
      const taken = await new Queue(other, '/jobs', { codec: text }).take();
      expect(await queue.tryTake()).toBeNull();
      const waiting = queue.take();
      await other.close();
      const item = await waiting;
      expect(item.value).toBe('a');
      expect(taken.isHeld).toBe(false);
      await expect(taken.done()).rejects.toThrow('not held any more');
      expect(await queue.size()).toBe(1);
      await item.done();
    }),
  );

  test(
    'refuses writes of a consumer that has lost its lease',
    inWorld(async (fleet, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      await client.create('/result');
      const item = await queue.take();
      await item.guarded!.set('/result', 'mine');
      const [lease] = (await client.children('/jobs-leases')).children;
      const other = await fleet.connect();
      await other.delete(`/jobs-leases/${lease}`);
      await expect(item.guarded!.set('/result', 'too late')).rejects.toThrow('not held any more');
      await expect(item.done()).rejects.toThrow('not held any more');
      expect(await queue.size()).toBe(1);
    }),
  );

  test(
    'tells a consumer whose item was deleted under its hands',
    inWorld(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const item = await queue.take();
      await client.delete(item.path);
      await expect(item.done()).rejects.toThrow('deleted by somebody else');
      await item.giveBack();
      expect((await client.children('/jobs-leases')).children).toEqual([]);
    }),
  );

  test(
    'has an item done once for all who say so at the same time',
    inWorld(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const item = await queue.take();
      await Promise.all([item.done(), item.done()]);
      expect(await queue.size()).toBe(0);
    }),
  );

  test(
    'is a loop, which gives back what is not done',
    inWorld(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.putAll(['a', 'b']);
      const seen: string[] = [];
      for await (const item of queue) {
        seen.push(item.value);
        if (seen.length > 1) await item.done();
        if (seen.length === 3) break;
      }
      expect(seen).toEqual(['a', 'a', 'b']);
      expect(await queue.size()).toBe(0);
      const signal = AbortSignal.abort();
      for await (const item of queue.items({ signal })) expect(item).toBe('never');
    }),
  );

  test(
    'leaves nothing behind when a wait is given up',
    inWorld(async (fleet, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await expect(queue.take({ timeoutMs: 200 })).rejects.toMatchObject({ code: 'TIMEOUT' });
      const controller = new AbortController();
      const aborted = queue.take({ signal: controller.signal });
      await fleet.world.sleep(100);
      controller.abort();
      await expect(aborted).rejects.toMatchObject({ code: 'ABORTED' });
      await fleet.world.sleep(1000);
      expect((await client.children('/jobs-lines/consumers')).children).toEqual([]);
      await queue.put('a');
      // However early it is given up, whatever was taken comes back.
      for (let ms = 0; ms < 10; ms++) await queue.take({ timeoutMs: ms / 2 }).catch(() => {});
      await fleet.world.sleep(1000);
      for (let ms = 0; ms < 10; ms++) {
        const late = queue.take({ timeoutMs: ms });
        await late.then(
          (item) => item.giveBack(),
          () => {},
        );
      }
      expect(await drain(queue)).toEqual(['a']);
    }),
  );

  test(
    'tells of data that are no item, and lets them be removed',
    inWorld(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: json<number>() });
      await queue.put(1);
      await client.create('/jobs/queue-', 'no envelope', { sequential: true });
      // An envelope of two items, as Curator's putMulti writes it, built by hand.
      const two = Uint8Array.of(0, 1, 0, 1, 1, 0, 0, 0, 1, 0x31, 1, 0, 0, 0, 2, 0x32, 0x33, 2);
      await client.create('/jobs/queue-', two, { sequential: true });
      await (await queue.take()).done();
      const bad = await queue.take();
      expect(bad.error?.message).toContain('version is not 1.1');
      expect(() => bad.value).toThrow();
      await bad.done();
      const multiple = await queue.take();
      expect(multiple.values).toEqual([1, 23]);
      expect(() => multiple.value).toThrow('holds 2 items');
      await multiple.done();
    }),
  );

  test(
    'lets producers wait while it is full, in their order',
    inWorld(async (fleet, client) => {
      const options = { codec: text, itemsMax: 3 };
      const other = await fleet.connect();
      const queue = new Queue(client, '/jobs', options);
      const puts: Promise<void>[] = [];
      for (let i = 0; i < 6; i++) {
        puts.push(queue.put(`a${i}`), new Queue(other, '/jobs', options).put(`b${i}`));
      }
      let largest = 0;
      const taken: string[] = [];
      while (taken.length < 12) {
        await fleet.world.sleep(50);
        largest = Math.max(largest, await queue.size());
        const item = await queue.take();
        taken.push(item.value);
        await item.done();
      }
      await Promise.all(puts);
      expect(largest).toBe(3);
      expect(taken.filter((value) => value.startsWith('a'))).toEqual(['a0', 'a1', 'a2', 'a3', 'a4', 'a5']);
      await queue.putAll(['x', 'y', 'z']);
      await expect(queue.put('more', { timeoutMs: 500 })).rejects.toMatchObject({
        code: 'TIMEOUT',
        outcome: 'not-applied',
      });
      await expect(queue.putAll(['1', '2', '3', '4'])).rejects.toThrow(RangeError);
      expect(await drain(queue)).toEqual(['x', 'y', 'z']);
    }),
  );

  test(
    'does not let a producer wait behind its own place when the same session comes back after it was lost',
    inWorld(async (fleet, client) => {
      const options = { codec: text, itemsMax: 3 };
      const consuming = await fleet.connect();
      const queue = new Queue(consuming, '/jobs', options);
      await queue.putAll(['a', 'b', 'c']);
      const put = new Queue(client, '/jobs', options).putAll(['d', 'e'], { timeoutMs: 60_000 });
      const whenPut = put.then(() => 'put').catch((error: Error) => error.message);
      await fleet.world.sleep(1000);
      const sessionId = client.session?.id;
      const { lostSignal } = client;
      // A service that is away for longer than the session timeout keeps its sessions.
      const [server] = fleet.ensemble.servers;
      server!.crash();
      await fleet.world.sleep(6000);
      expect(lostSignal.aborted).toBe(true);
      server!.start();
      await Promise.all([client.whenConnected(), consuming.whenConnected()]);
      expect(client.session?.id).toBe(sessionId);
      await fleet.world.sleep(1000);
      const producers = async (): Promise<number> =>
        (await consuming.children('/jobs-lines/producers', { read: 'linearizable' })).children.length;
      expect(await producers()).toBe(1);
      // Room for one makes it look, and wait again for room for two.
      await (await queue.take()).done();
      await fleet.world.sleep(1000);
      expect(await producers()).toBe(1);
      await (await queue.take()).done();
      expect(await whenPut).toBe('put');
      expect(await drain(queue)).toEqual(['c', 'd', 'e']);
      await fleet.world.sleep(1000);
      expect(await producers()).toBe(0);
    }),
  );

  test('makes no herd: of 50 consumers that wait, one reads the list for each item', async () => {
    const fleet = new Fleet(1, 1);
    await fleet.run(async () => {
      const clients = await fleet.connectAll(50);
      const producer = await fleet.connect();
      const queue = new Queue(producer, '/jobs', { codec: text });
      let lists = 0;
      const taken: string[] = [];
      for (const client of clients) {
        const children = client.children.bind(client);
        client.children = ((path: string, options: object) => {
          if (path === '/jobs') lists++;
          return children(path, options as never);
        }) as typeof client.children;
        void new Queue(client, '/jobs', { codec: text }).take().then(async (item) => {
          taken.push(item.value);
          await item.done();
        });
      }
      await fleet.world.sleep(5000);
      expect(lists).toBeLessThanOrEqual(50 + 2);
      lists = 0;
      for (let i = 0; i < 20; i++) {
        await queue.put(`${i}`);
        await fleet.world.sleep(200);
      }
      expect(taken).toHaveLength(20);
      // The one who takes it, the next one that comes to the head, and that one again when the item is done.
      expect(lists / 20).toBeLessThanOrEqual(4);
    });
  });
});

describe('a producer', () => {
  /** Lets transactions go only when the gate is opened. */
  function holdTransactions(client: Client): () => void {
    const begin = client.transaction.bind(client);
    let open = (): void => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    client.transaction = () => {
      const made = begin();
      const commit = made.commit.bind(made);
      made.commit = async (options) => {
        await opened;
        return commit(options);
      };
      return made;
    };
    return () => {
      client.transaction = begin;
      open();
    };
  }

  test(
    'puts more items at once than go together with others',
    inWorld(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      const values = Array.from({ length: 250 }, (_unused, i) => `${i}`);
      await Promise.all([queue.put('before'), queue.putAll(values, { timeoutMs: 10_000 }), queue.put('behind')]);
      expect(await drain(queue)).toEqual(['before', ...values, 'behind']);
    }),
  );

  test(
    'goes on with a put for which the queue has to be made while another one is given up',
    inWorld(async (fleet, client) => {
      const ensurePath = client.ensurePath.bind(client);
      client.ensurePath = async (path, options) => {
        if (path === '/jobs') await fleet.world.sleep(1000);
        return ensurePath(path, options);
      };
      const queue = new Queue(client, '/jobs', { codec: text });
      const putting = queue.put('a', { timeoutMs: 30_000 });
      await fleet.world.sleep(500);
      await expect(queue.put('b', { timeoutMs: 100 })).rejects.toMatchObject({ outcome: 'not-applied' });
      await putting;
      expect(await drain(queue)).toEqual(['a']);
    }),
  );

  test(
    'tells of a queue that cannot be made',
    inWorld(async (_, client) => {
      const refused = new NoAuthError({ operation: 'ensurePath', path: '/jobs' });
      const ensurePath = client.ensurePath.bind(client);
      client.ensurePath = (path, options) => (path === '/jobs' ? Promise.reject(refused) : ensurePath(path, options));
      const queue = new Queue(client, '/jobs', { codec: text });
      await expect(queue.put('a', { timeoutMs: 10_000 })).rejects.toMatchObject({ code: 'NOAUTH' });
    }),
  );

  test(
    'puts nothing later that was given up before it was refused',
    inWorld(async (fleet, client) => {
      const options = { codec: text, itemsMax: 1 };
      const other = new Queue(await fleet.connect(), '/jobs', options);
      const queue = new Queue(client, '/jobs', options);
      await queue.put('first');
      await (await other.take()).done();
      const open = holdTransactions(client);
      await expect(queue.put('late', { timeoutMs: 500 })).rejects.toMatchObject({ outcome: 'unknown' });
      await other.put('x');
      open();
      await fleet.world.sleep(1000);
      expect(await drain(other)).toEqual(['x']);
      await fleet.world.sleep(1000);
      expect(await drain(other)).toEqual([]);
    }),
  );

  test(
    'puts what has room as soon as what had none is given up',
    inWorld(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text, itemsMax: 3 });
      await queue.putAll(['a', 'b']);
      const large = queue.putAll(['c', 'd'], { timeoutMs: 500 });
      const small = queue.put('e', { timeoutMs: 10_000 });
      await expect(large).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
      await small;
      expect(await drain(queue)).toEqual(['a', 'b', 'e']);
    }),
  );

  test(
    'makes a full queue anew that is deleted while it waits for room',
    inWorld(async (fleet, client) => {
      const other = await fleet.connect();
      const queue = new Queue(client, '/jobs', { codec: text, itemsMax: 1 });
      await queue.put('a');
      const children = client.children.bind(client);
      client.children = (async (path: string, options: object) => {
        if (path === '/jobs') {
          client.children = children;
          await other.deleteRecursive('/jobs');
        }
        return children(path, options as never);
      }) as Client['children'];
      await queue.put('b', { timeoutMs: 10_000 });
      expect(await drain(queue)).toEqual(['b']);
    }),
  );

  test(
    'is not refused for what another one has put that cannot be sent',
    inWorld(async (_, client) => {
      const queue = new IdQueue(client, '/orders', { codec: text });
      const puts = [queue.put('6', 'a'), queue.put('\u0000', 'b'), queue.put('8', 'c')];
      const results = await Promise.allSettled(puts);
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect(await drain(queue)).toEqual(['a', 'c']);
    }),
  );
});

describe('a reply that is lost', () => {
  /** A connection that breaks when the next request has been sent: whether it is applied, chance decides. */
  async function breakSoon(fleet: Fleet, afterMs: number): Promise<void> {
    await fleet.world.sleep(afterMs);
    for (const end of fleet.world.network.openEnds) if (end.host === 'client1') end.breakStream();
  }

  test.each([true, false])('does not put or take anything twice (leases: %s)', async (leases) => {
    for (let seed = 1; seed <= 12; seed++) {
      const fleet = new Fleet(seed, 1);
      await fleet.run(async () => {
        const client = await fleet.connect();
        const queue = new Queue(client, '/jobs', { codec: text, leases });
        const values = Array.from({ length: 10 }, (_, i) => `${i}`);
        const puts = values.map(async (value, i) => {
          await fleet.world.sleep(20 * i);
          await queue.put(value);
        });
        for (let i = 0; i < 8; i++) await breakSoon(fleet, 7 + 3 * seed);
        await Promise.all(puts);
        expect(await queue.size()).toBe(10);
        const breaking = (async () => {
          for (let i = 0; i < 20; i++) await breakSoon(fleet, 5 + seed);
        })();
        expect(await drain(queue)).toEqual(values);
        await breaking;
      });
    }
  });
});

describe('what is in doubt', () => {
  /** The next transaction leaves, and before its answer the connection breaks for so long. */
  function loseNextReply({ world }: Fleet, client: Client, durationMs: number): void {
    const begin = client.transaction.bind(client);
    client.transaction = () => {
      client.transaction = begin;
      const made = begin();
      const commit = made.commit.bind(made);
      made.commit = (options) => {
        made.commit = commit;
        const committed = commit(options);
        world.timeline.plan(1, () => {
          world.network.block('client1', 'zk1');
          world.network.block('zk1', 'client1');
          for (const end of world.network.openEnds) if (end.host === 'client1') end.breakStream();
        });
        world.timeline.plan(durationMs, () => world.network.heal());
        return committed;
      };
      return made;
    };
  }

  test(
    'stays so when the client is closed',
    inWorld(async (fleet, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      loseNextReply(fleet, client, 60_000);
      const putting = queue.put('b');
      const whenPut = expect(putting).rejects.toMatchObject({ code: 'CLOSED', outcome: 'unknown' });
      await fleet.world.sleep(1000);
      await client.close({ timeoutMs: 100 });
      await whenPut;
    }),
  );

  test(
    'does not keep those who wait for longer than they like',
    inWorld(async (fleet, client) => {
      const latch = new CountDownLatch(client, '/latch', 5);
      await latch.countDown();
      const startedMs = fleet.world.nowMs;
      loseNextReply(fleet, client, 60_000);
      const counting = latch.countDown({ timeoutMs: 2000 });
      await expect(counting).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'unknown' });
      expect(fleet.world.nowMs - startedMs).toBeLessThan(10_000);
    }),
  );

  test(
    'stays so when the client is closed, for an item that is done, too',
    inWorld(async (fleet, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const item = await queue.take();
      loseNextReply(fleet, client, 60_000);
      const whenDone = expect(item.done()).rejects.toMatchObject({ code: 'CLOSED', outcome: 'unknown' });
      await fleet.world.sleep(1000);
      await client.close({ timeoutMs: 100 });
      await whenDone;
    }),
  );

  test(
    'does not keep those who come behind it for longer than they like',
    inWorld(async (fleet, client) => {
      const queue = new DelayQueue(client, '/later', { codec: text });
      await queue.put('a');
      // What the clock of the service showed is too old by then.
      await fleet.world.sleep(15_000);
      const startedMs = fleet.world.nowMs;
      loseNextReply(fleet, client, 60_000);
      const stuck = queue.put('stuck', { at: 1 });
      stuck.catch(() => {});
      const put = queue.put('b', { delayMs: 1, timeoutMs: 500 });
      await expect(put).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
      expect(fleet.world.nowMs - startedMs).toBeLessThan(10_000);
    }),
  );
});

describe('servers that take less than the client thinks', () => {
  test.each([Number.POSITIVE_INFINITY, 10])(
    'refuse an item that is too large for them, and none beside it (itemsMax: %d)',
    (itemsMax) =>
      inWorld(async (fleet) => {
        const client = await fleet.connect({ requestBytesMax: 8 * 1024 * 1024 });
        const queue = new Queue(client, '/jobs', { codec: text, itemsMax });
        await queue.put('a');
        const puts = ['b', 'c'.repeat(400_000), 'd'.repeat(1_500_000), 'e'].map((value) => queue.put(value));
        const outcomes = await Promise.allSettled(puts);
        expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
        await expect(puts[2]).rejects.toMatchObject({ code: 'REQUESTTOOLARGE', outcome: 'not-applied' });
        expect((await drain(queue)).map((value) => value[0])).toEqual(['a', 'b', 'c', 'e']);
      })(),
  );

  test(
    'get items one by one that are too large together',
    inWorld(async (fleet) => {
      const client = await fleet.connect({ requestBytesMax: 8 * 1024 * 1024 });
      const queue = new Queue(client, '/jobs', { codec: text });
      const values = ['a', 'b', 'c'].map((letter) => letter.repeat(400_000));
      await expect(queue.putAll(values)).rejects.toMatchObject({ code: 'REQUESTTOOLARGE', outcome: 'not-applied' });
      await Promise.all(values.map((value) => queue.put(value)));
      expect(await drain(queue)).toEqual(values);
    }),
  );

  test.each([1, 2])('do not make a put doubtful whose doubt is ended with %d lost replies', (deletionsMax) =>
    inWorld(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const begin = client.transaction.bind(client);
      const remove = client.delete.bind(client);
      let losses = 0;
      let deletions = 0;
      client.transaction = () => {
        const made = begin();
        const commit = made.commit.bind(made);
        made.commit = (options) => {
          const isLost = losses < 2 || (losses === 2 && deletions < deletionsMax);
          if (!isLost) return commit(options);
          losses++;
          return Promise.reject(new ConnectionLossError({ operation: 'transaction', path: null, outcome: 'unknown' }));
        };
        return made;
      };
      client.delete = async (path, options) => {
        const isLost = deletions++ < deletionsMax;
        await remove(path, options).catch((error: unknown) => {
          if (!isLost) throw error;
        });
        if (isLost) throw new ConnectionLossError({ operation: 'delete', path, outcome: 'unknown' });
      };
      await queue.put('b');
      expect([losses, deletions]).toEqual([deletionsMax + 1, deletionsMax]);
      client.delete = remove;
      expect(await drain(queue)).toEqual(['a', 'b']);
    })(),
  );

  test(
    'do not make a put go out twice whose replies are lost as often',
    inWorld(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const begin = client.transaction.bind(client);
      let losses = 0;
      client.transaction = () => {
        const made = begin();
        const commit = made.commit.bind(made);
        made.commit = async (options) => {
          const isApplied = losses === 0;
          if (isApplied) await commit(options);
          losses++;
          throw new ConnectionLossError({ operation: 'transaction', path: null, outcome: 'unknown' });
        };
        return made;
      };
      await queue.put('b');
      client.transaction = begin;
      await queue.put('c');
      expect(losses).toBeGreaterThan(1);
      expect(await drain(queue)).toEqual(['a', 'b', 'c']);
    }),
  );
});

test.each([Number.POSITIVE_INFINITY, 10])(
  'puts nothing that was given up before anything was sent (itemsMax: %d)',
  (itemsMax) =>
    inWorld(async (fleet, client) => {
      const { network } = fleet.world;
      const queue = new Queue(client, '/jobs', { codec: text, itemsMax });
      await queue.put('a');
      network.block('client1', 'zk1');
      network.block('zk1', 'client1');
      for (const end of network.openEnds) end.breakStream();
      await fleet.world.sleep(100);
      const others = [queue.put('b'), queue.put('c')];
      const given = queue.put('x', { timeoutMs: 500 });
      others.push(queue.put('d'));
      await expect(given).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
      await expect(queue.put('y', { timeoutMs: 500 })).rejects.toMatchObject({
        code: 'TIMEOUT',
        outcome: 'not-applied',
      });
      network.heal();
      await Promise.all(others);
      expect(await drain(queue)).toEqual(['a', 'b', 'c', 'd']);
    })(),
);

test(
  'puts nothing that is the first of its transaction and was given up before anything was sent',
  inWorld(async (fleet, client) => {
    const { network } = fleet.world;
    const queue = new Queue(client, '/jobs', { codec: text });
    network.block('client1', 'zk1');
    network.block('zk1', 'client1');
    for (const end of network.openEnds) end.breakStream();
    await fleet.world.sleep(100);
    const abort = new AbortController();
    const given = queue.put('x', { signal: abort.signal });
    const other = queue.put('b', { timeoutMs: 60_000 });
    await fleet.world.sleep(100);
    abort.abort();
    await expect(given).rejects.toMatchObject({ code: 'ABORTED', outcome: 'not-applied' });
    network.heal();
    await other;
    expect(await drain(queue)).toEqual(['b']);
  }),
);

test.each([true, false])('an item that was given back is not done any more (leases: %s)', (leases) =>
  inWorld(async (_, client) => {
    const queue = new Queue(client, '/jobs', { codec: text, leases });
    await queue.put('a');
    const item = await queue.take();
    await item.giveBack();
    await expect(item.done()).rejects.toThrow('not held any more');
    expect(await drain(queue)).toEqual(['a']);
    await queue.put('b');
    const next = await queue.take();
    await next.done();
    await next.done();
    await next.giveBack();
    expect(await queue.size()).toBe(0);
  })(),
);

test(
  'a put is not taken for one that was refused when a server without a quorum answers in the doubt',
  inWorld(async (_, client) => {
    const queue = new Queue(client, '/jobs', { codec: text });
    await queue.put('a');
    const begin = client.transaction.bind(client);
    let count = 0;
    client.transaction = () => {
      const made = begin();
      const commit = made.commit.bind(made);
      made.commit = async (options) => {
        count++;
        if (count > 1 && count < 4) throw new NotReadOnlyError({ operation: 'transaction', path: null });
        const results = await commit(options);
        if (count > 1) return results;
        throw new ConnectionLossError({ operation: 'transaction', path: null, outcome: 'unknown' });
      };
      return made;
    };
    await queue.put('b');
    expect(count).toBe(4);
    client.transaction = begin;
    expect(await drain(queue)).toEqual(['a', 'b']);
  }),
);

describe('a queue without leases', () => {
  test.each(['heals', 'is closed'])(
    'lets no loop go before its item is in the queue again, unless the client %s',
    (end) =>
      inWorld(async (fleet, client) => {
        const queue = new Queue(client, '/jobs', { codec: text, leases: false });
        await queue.put('a');
        const looping = (async () => {
          for await (const item of queue) {
            expect(item.value).toBe('a');
            cutOff(fleet, 20_000);
            for (const open of fleet.world.network.openEnds) open.breakStream();
            // It is not under way when the session ends.
            await fleet.world.sleep(100);
            break;
          }
        })();
        const state = { isSettled: false };
        const settled = looping.finally(() => {
          state.isSettled = true;
        });
        settled.catch(() => {});
        await fleet.world.sleep(10_000);
        expect(state.isSettled).toBe(false);
        if (end === 'heals') {
          await settled;
          expect(await drain(queue)).toEqual(['a']);
        } else {
          await client.close({ timeoutMs: 100 });
          await expect(settled).rejects.toMatchObject({ code: 'CLOSED' });
        }
      })(),
  );

  test(
    'has an item again that was given back while there was no connection, however long that took',
    inWorld(async (fleet, client) => {
      const { network } = fleet.world;
      const queue = new Queue(client, '/jobs', { codec: text, leases: false });
      await queue.put('a');
      const item = await queue.take();
      network.block('client1', 'zk1');
      network.block('zk1', 'client1');
      for (const end of network.openEnds) end.breakStream();
      await expect(item.giveBack({ timeoutMs: 500 })).rejects.toMatchObject({ code: 'TIMEOUT' });
      network.heal();
      await item.giveBack();
      expect(await drain(queue)).toEqual(['a']);
    }),
  );
});

test(
  'leaves no lease behind of an item that somebody has deleted when the reply was lost',
  inWorld(async (fleet, client) => {
    const other = await fleet.connect();
    const queue = new Queue(client, '/jobs', { codec: text });
    await queue.putAll(['a', 'b']);
    const begin = client.transaction.bind(client);
    client.transaction = () => {
      client.transaction = begin;
      const made = begin();
      const commit = made.commit.bind(made);
      made.commit = async (options) => {
        made.commit = commit;
        await commit(options);
        await other.delete('/jobs/queue-0000000000');
        throw new ConnectionLossError({ operation: 'transaction', path: null, outcome: 'unknown' });
      };
      return made;
    };
    await client.ensurePath('/jobs-leases');
    expect(await drain(queue)).toEqual(['b']);
    await fleet.world.sleep(1000);
    expect((await other.children('/jobs-leases')).children).toEqual([]);
  }),
);

test.each([true, false])('a wait goes on when the session is lost while an item is claimed (leases: %s)', (leases) =>
  inWorld(async (_, client) => {
    const queue = new Queue(client, '/jobs', { codec: text, leases });
    await queue.put('a');
    // The lease claims by a znode whose parent is missing at first, the other one reads the item before it is removed.
    const { get, ensurePath } = client;
    let failures = 0;
    const fail = (path: string): boolean => (path === '/jobs-leases' || path.startsWith('/jobs/')) && failures++ === 0;
    const lost = (path: string): SessionLostError => new SessionLostError({ operation: 'claim', path });
    client.get = ((path: string, options: object) =>
      fail(path) ? Promise.reject(lost(path)) : get.call(client, path, options as never)) as typeof client.get;
    client.ensurePath = (path, options) =>
      fail(path) ? Promise.reject(lost(path)) : ensurePath.call(client, path, options);
    const item = await queue.take({ timeoutMs: 10_000 });
    expect([item.value, failures > 0]).toEqual(['a', true]);
    await item.done();
    expect(await queue.size()).toBe(0);
  })(),
);

describe('a session that ends while an item is claimed', () => {
  /** Cuts a client off as soon as it claims something, for longer than its session lives. */
  function cutAtClaim({ world }: Fleet, client: Client): void {
    const begin = client.transaction.bind(client);
    client.transaction = () => {
      client.transaction = begin;
      world.network.block('client1', 'zk1');
      world.network.block('zk1', 'client1');
      world.timeline.plan(10_000, () => world.network.heal());
      return begin();
    };
  }

  test(
    'does not make an item look as if it were not there',
    inWorld(async (fleet, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      cutAtClaim(fleet, client);
      const item = await queue.tryTake();
      expect(item?.value).toBe('a');
      await item?.done();
    }),
  );

  test(
    'does not keep an item that is to be removed',
    inWorld(async (fleet, client) => {
      const queue = new IdQueue(client, '/orders', { codec: text });
      await queue.put('7', 'a');
      await queue.put('8', 'b');
      await queue.put('7', 'c');
      cutAtClaim(fleet, client);
      expect(await queue.remove('7')).toBe(2);
      expect(await drain(queue)).toEqual(['b']);
    }),
  );
});

test('giving an item back again, after a lost reply, does not take it from the next one who has it', async () => {
  for (let breakMs = 0; breakMs < 8; breakMs += 0.5) {
    const fleet = new Fleet(1, 1);
    await fleet.run(async () => {
      const [first, second] = await fleet.connectAll(2);
      const queue = new Queue(first!, '/jobs', { codec: text });
      await queue.put('a');
      const item = await queue.take();
      const taking = new Queue(second!, '/jobs', { codec: text }).take();
      await fleet.world.sleep(100);
      const returning = item.giveBack();
      await fleet.world.sleep(breakMs);
      for (const end of fleet.world.network.openEnds) if (end.host === 'client1') end.breakStream();
      const next = await taking;
      await returning;
      await fleet.world.sleep(3000);
      expect(next.isHeld, `the connection broke after ${breakMs} ms`).toBe(true);
      await next.done();
    });
  }
});

test(
  'giving an item back takes it from nobody who has it since somebody deleted the lease a moment before',
  inWorld(async (fleet, client) => {
    const other = await fleet.connect();
    const queue = new Queue(client, '/jobs', { codec: text });
    await queue.put('a');
    const item = await queue.take();
    // What the service tells of the deletion is on its way for so long.
    fleet.world.network.slowDown('zk1', 'client1', { ...DEFAULT_LINK, delayMinMs: 800, delayMaxMs: 900 });
    await other.delete('/jobs-leases/queue-0000000000');
    const next = await new Queue(other, '/jobs', { codec: text }).take();
    expect([item.isHeld, next.isHeld]).toEqual([true, true]);
    await item.giveBack();
    await fleet.world.sleep(3000);
    expect(next.isHeld).toBe(true);
    await next.done();
  }),
);

test(
  'leaves no tallies behind when callers give up while the clock of the service is asked for',
  inWorld(async (fleet, client) => {
    const queue = new DelayQueue(client, '/later', { codec: text });
    await queue.put('first', { delayMs: 1 });
    fleet.world.network.slowDown('zk1', 'client1', { ...DEFAULT_LINK, delayMinMs: 800, delayMaxMs: 900 });
    // The first has a tally already, and each of the others makes one of its own before its time is over.
    for (const timeoutMs of [500, 1200, 1200, 1200]) {
      // What the clock showed last is too old by then.
      await fleet.world.sleep(15_000);
      await expect(queue.put('slow', { delayMs: 1, timeoutMs })).rejects.toMatchObject({ code: 'TIMEOUT' });
    }
    await queue.put('last', { delayMs: 1 });
    await fleet.world.sleep(3000);
    expect((await client.children('/later-lines/tallies')).children).toHaveLength(1);
  }),
);

describe('a priority queue', () => {
  test(
    'gives the smallest priority first, in both layouts',
    inWorld(async (_, client) => {
      const curator = new PriorityQueue(client, '/curator', { codec: text });
      for (const priority of [5, -1, 0, 2 ** 31 - 1, -(2 ** 31), 5]) await curator.put(`${priority}`, { priority });
      expect(await drain(curator)).toEqual(['-2147483648', '-1', '0', '5', '5', '2147483647']);
      for (const layout of ['kazoo', 'kazoo-locking'] as const) {
        const kazoo = new PriorityQueue(client, `/${layout}`, { codec: text, layout });
        for (const priority of [999, 0, 7, undefined]) await kazoo.put(`${priority}`, { priority });
        expect(await drain(kazoo)).toEqual(['0', '7', 'undefined', '999']);
        await expect(kazoo.put('x', { priority: 1000 })).rejects.toThrow(RangeError);
      }
    }),
  );
});

describe('a delay queue', () => {
  test(
    'gives nothing before its time by the clock of the servers, and then the earliest first',
    inWorld(async (fleet, client) => {
      const queue = new DelayQueue(client, '/later', { codec: text });
      await queue.put('c', { delayMs: 3000 });
      await queue.put('a');
      await queue.put('b', { delayMs: 1500 });
      expect(await drain(queue)).toEqual(['a']);
      expect(await queue.tryTake()).toBeNull();
      const startedMs = fleet.world.nowMs;
      for (const [value, afterMs] of [
        ['b', 1500],
        ['c', 3000],
      ] as const) {
        const item = await queue.take();
        expect(item.value).toBe(value);
        const passedMs = fleet.world.nowMs - startedMs;
        expect(passedMs).toBeGreaterThan(afterMs - 200);
        expect(passedMs).toBeLessThan(afterMs + 200);
        await item.done();
      }
      await queue.put('past', { at: new Date(1000) });
      expect(await drain(queue)).toEqual(['past']);
      await expect(queue.put('x', { at: 5, delayMs: 3 })).rejects.toThrow(RangeError);
      await expect(queue.put('x', { delayMs: Number.NaN })).rejects.toThrow(RangeError);
      await expect(queue.put('x', { delayMs: Number.POSITIVE_INFINITY })).rejects.toThrow(RangeError);
    }),
  );

  test(
    'keeps an item back for all of its delay, however long the service takes to answer its producer',
    inWorld(async (fleet, client) => {
      const { world } = fleet;
      world.network.slowDown('zk1', 'client1', { ...DEFAULT_LINK, delayMinMs: 800, delayMaxMs: 900 });
      const consuming = new DelayQueue(await fleet.connect(), '/later', { codec: text });
      const producing = new DelayQueue(client, '/later', { codec: text });
      await producing.put('at once');
      await (await consuming.take()).done();
      const taking = consuming.take();
      const startedMs = world.nowMs;
      await producing.put('a', { delayMs: 5000 });
      await (await taking).done();
      expect(world.nowMs - startedMs).toBeGreaterThan(5000);
    }),
  );
});

describe('an id queue', () => {
  test(
    'keeps no item from others that it may not remove',
    inWorld(async (fleet, client) => {
      const queue = new IdQueue(client, '/orders', { codec: text });
      await queue.put('7', 'a');
      await client.setAcl('/orders', [{ perms: 0b10111, scheme: 'world', id: 'anyone' }]);
      await expect(queue.remove('7')).rejects.toThrow('NOAUTH');
      await fleet.world.sleep(1000);
      expect((await client.children('/orders-leases')).children).toEqual([]);
      expect(await queue.has('7')).toBe(true);
    }),
  );

  test(
    'removes an item for no longer than its caller likes, and brings to its end what was begun',
    inWorld(async (fleet, client) => {
      const queue = new IdQueue(client, '/orders', { codec: text });
      await queue.put('7', 'a');
      await client.ensurePath('/orders-leases');
      const begin = client.transaction.bind(client);
      let count = 0;
      client.transaction = () => {
        // The first makes the lease, the second deletes it with the item.
        if (++count === 2) cutOff(fleet, 2500);
        return begin();
      };
      const startedMs = fleet.world.nowMs;
      await expect(queue.remove('7', { timeoutMs: 500 })).rejects.toMatchObject({
        code: 'TIMEOUT',
        outcome: 'unknown',
      });
      expect(fleet.world.nowMs - startedMs).toBeLessThan(1500);
      await fleet.world.sleep(5000);
      expect([await queue.has('7'), (await client.children('/orders-leases')).children]).toEqual([false, []]);
    }),
  );

  test(
    'finds and removes what nobody has taken',
    inWorld(async (_, client) => {
      const queue = new IdQueue(client, '/orders', { codec: text });
      await queue.put('7', 'first');
      await queue.put('8/x', 'second');
      await queue.put('7', 'third');
      expect(await queue.has('8/x')).toBe(true);
      expect(await queue.has('9')).toBe(false);
      const first = await queue.take();
      expect(first.value).toBe('first');
      expect(await queue.remove('7')).toBe(1);
      expect(await queue.has('7')).toBe(true);
      await first.done();
      expect(await queue.has('7')).toBe(false);
      expect(await drain(queue)).toEqual(['second']);
    }),
  );
});
