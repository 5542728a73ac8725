import { type Client, ConnectionLossError, NotReadOnlyError, nullableBytes } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { withClients } from '../testing/fleet.ts';
import { watched } from '../testing/watched.ts';
import { Barrier } from './barrier.ts';
import { CountDownLatch } from './count-down-latch.ts';

describe('a barrier', () => {
  test(
    'blocks callers while it is set, and releases all of them when it is removed',
    withClients(async (fleet, ...clients) => {
      const [first, ...others] = clients.map((client) => new Barrier(client, '/a/barrier')) as [Barrier, ...Barrier[]];
      await first.wait();
      await first.set();
      await first.set();
      expect(await others[0]!.isSet()).toBe(true);
      const waits = others.map((barrier) => barrier.wait());
      const states = waits.map(watched);
      await expect(first.wait({ timeoutMs: 100 })).rejects.toMatchObject({ code: 'TIMEOUT' });
      await fleet.world.sleep(5000);
      expect(states.map(({ isSettled }) => isSettled)).toEqual([false, false]);
      await first.remove();
      await Promise.all(waits);
      await first.remove();
      expect(await first.isSet()).toBe(false);
    }, 3),
  );

  test(
    'releases callers that waited when it was removed and set again at once',
    withClients(async (fleet, client, other) => {
      const barrier = new Barrier(client, '/barrier');
      await barrier.set();
      const waiting = new Barrier(other, '/barrier').wait();
      await fleet.world.sleep(100);
      await client.transaction().delete('/barrier').create('/barrier').commit();
      await waiting;
      expect(await barrier.isSet()).toBe(true);
    }, 3),
  );
});

describe('a barrier whose remover gets no answer', () => {
  test(
    'is not removed again when another client has set it meanwhile',
    withClients(async (_, client, other) => {
      const barrier = new Barrier(client, '/barrier');
      await barrier.set();
      const remove = client.delete.bind(client);
      client.delete = async (path, options) => {
        client.delete = remove;
        await remove(path, options);
        await new Barrier(other, '/barrier').set();
        throw new ConnectionLossError({ operation: 'delete', path, outcome: 'unknown' });
      };
      await barrier.remove();
      expect(await barrier.isSet()).toBe(true);
      client.delete = async (path) => {
        throw new ConnectionLossError({ operation: 'delete', path, outcome: 'unknown' });
      };
      await expect(barrier.remove({ timeoutMs: 100 })).rejects.toMatchObject({ outcome: 'unknown' });
    }, 3),
  );
});

test(
  'a barrier that may have been set is reported as such although the retry is refused',
  withClients(async (_, client) => {
    const create = client.createParents.bind(client);
    client.createParents = async (path, ...rest) => {
      client.createParents = async () => {
        throw new NotReadOnlyError({ operation: 'createParents', path });
      };
      await create(path, ...rest);
      throw new ConnectionLossError({ operation: 'createParents', path, outcome: 'unknown' });
    };
    const barrier = new Barrier(client, '/barrier');
    await expect(barrier.set()).rejects.toMatchObject({ code: 'NOTREADONLY', outcome: 'unknown' });
    expect(await barrier.isSet()).toBe(true);
    await expect(barrier.set()).rejects.toMatchObject({ code: 'NOTREADONLY', outcome: 'not-applied' });
  }, 3),
);

describe('a count-down latch', () => {
  test(
    'is not opened by a client that would create it with count 0 but is too late to create it',
    withClients(async (fleet, client, other) => {
      const get = client.get.bind(client);
      client.get = (async (path: string, options: object) => {
        client.get = get;
        const missing = await get(path, options as never).catch((error: unknown) => error);
        await new CountDownLatch(other, '/latch', 2).count();
        throw missing;
      }) as Client['get'];
      const state = watched(new CountDownLatch(client, '/latch', 0).wait());
      await fleet.world.sleep(1000);
      expect(state.isSettled).toBe(false);
      expect((await other.children('/latch')).children).not.toContain('open');
      // One that was created without `open` opens, too.
      await other.create('/half', '0');
      await new CountDownLatch(client, '/half', 0).wait({ timeoutMs: 5000 });
    }, 3),
  );

  test(
    'is not opened by a client that counts down while it is deleted',
    withClients(async (fleet, client, other) => {
      await new CountDownLatch(other, '/latch', 3).countDown();
      const get = client.get.bind(client);
      client.get = (async (path: string, options: object) => {
        client.get = get;
        const read = await get(path, options as never);
        await other.deleteRecursive('/latch');
        return read;
      }) as Client['get'];
      expect(await new CountDownLatch(client, '/latch', 3).countDown()).toBe(2);
      const state = watched(new CountDownLatch(other, '/latch', 3).wait());
      await fleet.world.sleep(1000);
      expect(state.isSettled).toBe(false);
    }, 3),
  );

  test(
    'releases all waiters when it opens, although the first of them deletes it',
    withClients(async (fleet, client, other) => {
      const state = watched(new CountDownLatch(client, '/latch', 1).wait());
      await fleet.world.sleep(1000);
      const exists = client.exists.bind(client);
      // It was notified, but is slow to look.
      client.exists = (async (...call: Parameters<typeof exists>) => {
        client.exists = exists;
        await other.deleteRecursive('/latch');
        return exists(...call);
      }) as typeof exists;
      await new CountDownLatch(other, '/latch', 1).countDown();
      await fleet.world.sleep(1000);
      expect(state.isSettled).toBe(true);
    }, 3),
  );

  test(
    'releases a client that starts to wait while it is opened and deleted',
    withClients(async (fleet, client, other) => {
      const latch = new CountDownLatch(other, '/latch', 1);
      await latch.count();
      const get = client.get.bind(client);
      client.get = (async (path: string, options: object) => {
        client.get = get;
        const read = await get(path, options as never);
        await latch.countDown();
        await other.deleteRecursive('/latch');
        return read;
      }) as Client['get'];
      const state = watched(new CountDownLatch(client, '/latch', 1).wait());
      await fleet.world.sleep(1000);
      expect(state.isSettled).toBe(true);
    }, 3),
  );

  test(
    'names the cancelled call, and says whether it may have been counted',
    withClients(async (fleet, client) => {
      const latch = new CountDownLatch(client, '/latch', 3);
      const about = { code: 'TIMEOUT', operation: 'CountDownLatch.countDown', path: '/latch' };
      const blockBefore = (method: 'create' | 'set'): void => {
        const begin = client.transaction.bind(client);
        client.transaction = () => {
          const transaction = begin();
          const add = transaction[method].bind(transaction) as (...call: unknown[]) => unknown;
          transaction[method] = ((path: string, ...rest: unknown[]) => {
            client.transaction = begin;
            if (path === '/latch') fleet.world.network.block('zk1', 'client1');
            return add(path, ...rest);
          }) as never;
          return transaction;
        };
      };
      // The reply to its creation is lost: that is no count.
      blockBefore('create');
      await expect(latch.countDown({ timeoutMs: 1000 })).rejects.toMatchObject({ ...about, outcome: 'not-applied' });
      fleet.world.network.heal();
      await client.whenConnected();
      expect(await latch.count()).toBe(3);
      blockBefore('set');
      await expect(latch.countDown({ timeoutMs: 1000 })).rejects.toMatchObject({ ...about, outcome: 'unknown' });
    }, 1),
  );

  test(
    'is not made from a znode that is no latch',
    withClients(async (_, client) => {
      await client.create('/other', '');
      const latch = new CountDownLatch(client, '/other', 3);
      await expect(latch.wait({ timeoutMs: 5000 })).rejects.toThrow('is no latch');
      await expect(latch.countDown()).rejects.toThrow('is no latch');
    }, 3),
  );

  test(
    'opens for all waiters when all have counted down',
    withClients(async (fleet, ...clients) => {
      const latches = clients.map((client) => new CountDownLatch(client, '/a/latch', 6));
      const waiting = latches.map((latch) => latch.wait());
      const states = waiting.map(watched);
      await Promise.all(latches.map((latch) => latch.countDown()));
      await Promise.all(latches.slice(1).map((latch) => latch.countDown()));
      await fleet.world.sleep(1000);
      expect(states.some(({ isSettled }) => isSettled)).toBe(false);
      expect(await latches[0]!.count()).toBe(1);
      expect(await latches[0]!.countDown()).toBe(0);
      await Promise.all(waiting);
      expect(await latches[0]!.countDown()).toBe(0);
      await latches[0]!.wait();
      await new CountDownLatch(clients[0]!, '/none', 0).wait();
      const data = await clients[0]!.get('/a/latch', { codec: nullableBytes });
      expect(new TextDecoder().decode(data.data!)).toBe('0');
    }, 3),
  );
});
