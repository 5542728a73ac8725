import { text } from '@meerkat/client';
import { DEFAULT_LINK } from '@meerkat/simulator';
import { describe, expect, test } from 'vitest';
import { cutOff, drain } from '../testing/drain.ts';
import { withClients } from '../testing/fleet.ts';
import { DelayQueue } from './delay-queue.ts';
import { IdQueue } from './id-queue.ts';
import { PriorityQueue } from './priority-queue.ts';

describe('a priority queue', () => {
  test(
    'delivers the smallest priority first, in both layouts',
    withClients(async (_, client) => {
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
    'delivers nothing before its time by the clock of the servers, and then the earliest first',
    withClients(async (fleet, client) => {
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
    'withholds an item for its whole delay, however long the service takes to answer its producer',
    withClients(async (fleet, client) => {
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

  test(
    "respects the caller's timeout for looking and reading the clock together",
    withClients(async ({ world }, client) => {
      await new DelayQueue(client, '/later', { codec: text }).put('a', { delayMs: 60_000 });
      const queue = new DelayQueue(client, '/later', { codec: text });
      world.network.slowDown('zk1', 'client1', { ...DEFAULT_LINK, delayMinMs: 800, delayMaxMs: 900 });
      const startedMs = world.nowMs;
      await expect(queue.tryTake({ timeoutMs: 1000 })).rejects.toMatchObject({ code: 'TIMEOUT' });
      expect(world.nowMs - startedMs).toBeLessThan(1100);
    }),
  );

  test(
    "respects the caller's timeout for putting and reading the clock together",
    withClients(async ({ world }, client) => {
      const queue = new DelayQueue(client, '/later', { codec: text, itemsMax: 1 });
      await queue.put('a', { delayMs: 60_000 });
      await world.sleep(20_000);
      world.network.slowDown('client1', 'zk1', { ...DEFAULT_LINK, delayMinMs: 800, delayMaxMs: 900 });
      const startedMs = world.nowMs;
      const expected = { code: 'TIMEOUT', outcome: 'not-applied' };
      await expect(queue.put('b', { delayMs: 60_000, timeoutMs: 1000 })).rejects.toMatchObject(expected);
      expect(world.nowMs - startedMs).toBeLessThan(1100);
    }),
  );
});

describe('an id queue', () => {
  test(
    'does not block an item that it may not remove',
    withClients(async (fleet, client) => {
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
    "respects the caller's timeout for a removal, and completes a removal that has begun",
    withClients(async (fleet, client) => {
      const queue = new IdQueue(client, '/orders', { codec: text });
      await queue.put('7', 'a');
      await client.ensurePath('/orders-leases');
      const begin = client.transaction.bind(client);
      let count = 0;
      client.transaction = () => {
        // The first creates the lease, the second deletes it with the item.
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

  test.each([
    [1, 'not-applied'],
    [3, 'unknown'],
  ] as const)(
    'reports whether a removal of two items, cancelled in transaction %i, may have removed one: %s',
    async (number, outcome) => {
      for (const end of ['abort', 'close'] as const) {
        await withClients(async (_, client) => {
          const queue = new IdQueue(client, '/orders', { codec: text });
          await queue.put('7', 'a');
          await queue.put('7', 'b');
          await client.ensurePath('/orders-leases');
          const controller = new AbortController();
          const begin = client.transaction.bind(client);
          let count = 0;
          client.transaction = () => {
            // For each item the first creates the lease, and the second deletes it with the item.
            if (++count === number) {
              if (end === 'abort') controller.abort();
              else void client.close();
            }
            return begin();
          };
          await expect(queue.remove('7', { signal: controller.signal })).rejects.toMatchObject({ outcome });
        })();
      }
    },
  );

  test(
    'finds and removes items that are not taken',
    withClients(async (_, client) => {
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
