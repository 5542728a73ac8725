import { type Codec, json, NoAuthError, ThrottledError, text } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { drain } from '../testing/drain.ts';
import { Fleet, withClients } from '../testing/fleet.ts';
import { Queue } from './queue.ts';

describe('a queue', () => {
  test(
    'delivers items in the order in which they were put, in every layout',
    withClients(async (_, client) => {
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
    'delivers an item to no other client while it is held, and at its old place when it is released',
    withClients(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.putAll(['a', 'b', 'c']);
      const a = await queue.take();
      const b = await queue.take();
      expect([a.value, b.value, a.isHeld, b.isHeld]).toEqual(['a', 'b', true, true]);
      await a.release();
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
    'delivers a leased item also when the server refuses to read it at first',
    withClients(async (_, client) => {
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
    'does not block an item that the service refuses to show',
    withClients(async (fleet, client) => {
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
    'releases items at the end of the scope and of the session',
    withClients(async (fleet, client) => {
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
      await expect(taken.done()).rejects.toThrow('no longer held');
      expect(await queue.size()).toBe(1);
      await item.done();
    }),
  );

  test(
    'refuses writes of a consumer that has lost its lease',
    withClients(async (fleet, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      await client.create('/result');
      const item = await queue.take();
      await item.guarded!.set('/result', 'mine');
      const [lease] = (await client.children('/jobs-leases')).children;
      const other = await fleet.connect();
      await other.delete(`/jobs-leases/${lease}`);
      await expect(item.guarded!.set('/result', 'too late')).rejects.toThrow('no longer held');
      await expect(item.done()).rejects.toThrow('no longer held');
      expect(await queue.size()).toBe(1);
    }),
  );

  test(
    'notifies a consumer whose item was deleted by another client',
    withClients(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const item = await queue.take();
      await client.delete(item.path);
      await expect(item.done()).rejects.toThrow('deleted by another client');
      await item.release();
      expect((await client.children('/jobs-leases')).children).toEqual([]);
    }),
  );

  test(
    'completes an item once for concurrent calls of done',
    withClients(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: text });
      await queue.put('a');
      const item = await queue.take();
      await Promise.all([item.done(), item.done()]);
      expect(await queue.size()).toBe(0);
    }),
  );

  test(
    'can be iterated, which releases items that are not done',
    withClients(async (_, client) => {
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
    'leaves nothing behind when a wait is cancelled',
    withClients(async (fleet, client) => {
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
      // However early it is cancelled, a taken item comes back.
      for (let ms = 0; ms < 10; ms++) await queue.take({ timeoutMs: ms / 2 }).catch(() => {});
      await fleet.world.sleep(1000);
      for (let ms = 0; ms < 10; ms++) {
        const late = queue.take({ timeoutMs: ms });
        await late.then(
          (item) => item.release(),
          () => {},
        );
      }
      expect(await drain(queue)).toEqual(['a']);
    }),
  );

  test(
    'reports data that is no item, and lets it be removed',
    withClients(async (_, client) => {
      const queue = new Queue(client, '/jobs', { codec: json<number>() });
      await queue.put(1);
      await client.create('/jobs/queue-', 'no envelope', { sequential: true });
      // An envelope of two items, as written by Curator's putMulti, built by hand.
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
    'has undefined values if the codec returns them',
    withClients(async (_, client) => {
      const signals: Codec<undefined> = { encode: () => null, decode: () => undefined };
      const queue = new Queue(client, '/signals', { codec: signals });
      await queue.put(undefined);
      const item = await queue.take();
      expect([item.error, item.value, item.values]).toEqual([null, undefined, [undefined]]);
    }),
  );

  test(
    'makes producers wait while it is full, in order',
    withClients(async (fleet, client) => {
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
    'does not make a producer wait behind its own place when the same session comes back after it was lost',
    withClients(async (fleet, client) => {
      const options = { codec: text, itemsMax: 3 };
      const consuming = await fleet.connect();
      const queue = new Queue(consuming, '/jobs', options);
      await queue.putAll(['a', 'b', 'c']);
      const put = new Queue(client, '/jobs', options).putAll(['d', 'e'], { timeoutMs: 60_000 });
      const whenPut = put.then(() => 'put').catch((error: Error) => error.message);
      await fleet.world.sleep(1000);
      const sessionId = client.session?.id;
      const { lostSignal } = client;
      // A service that is down for longer than the session timeout keeps its sessions.
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

  test('causes no herd: of 50 waiting consumers, one reads the list for each item', async () => {
    const fleet = new Fleet(1, { servers: 1 });
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
      // The consumer that takes it, the next one at the head, and that one again when the item is done.
      expect(lists / 20).toBeLessThanOrEqual(4);
    });
  });
});
