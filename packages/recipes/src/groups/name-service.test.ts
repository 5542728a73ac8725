import { BadVersionError, NodeExistsError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { NameService } from './name-service.ts';
import { inWorld } from './testing/world.ts';

const SOLO = 1;

describe('a name service', () => {
  test('binds, resolves, changes by version, lists and frees names', () =>
    inWorld(
      1,
      async (world) => {
        const client = await world.connect('app');
        const names = new NameService(client, '/names');
        expect(await names.resolve('db/orders')).toBeNull();
        expect(await names.list()).toEqual([]);
        const { version } = await names.bind('db/orders', 'a:1');
        await expect(names.bind('db/orders', 'b:1')).rejects.toThrow(NodeExistsError);
        expect(await names.resolve('db/orders')).toBe('a:1');
        await names.rebind('db/orders', 'b:1', { version });
        await expect(names.rebind('db/orders', 'c:1', { version })).rejects.toThrow(BadVersionError);
        expect(await names.resolve('db/orders')).toBe('b:1');
        await names.bind('db/users', 'x:1');
        expect(await names.list('db')).toEqual(['orders', 'users']);
        await names.unbind('db/orders', { version: version + 1 });
        expect(await names.resolve('db/orders')).toBeNull();
        await client.close();
      },
      SOLO,
    ));

  test('lets a name stand for an address while its process lives, and tells others of changes', () =>
    inWorld(
      2,
      async (world) => {
        const server = await world.connect('server');
        const client = await world.connect('client');
        const bound = new NameService(server, '/names').bindWhileAlive('cache', 'h1:1', 'host1');
        await bound.whenPresent();
        const told: (string | undefined)[] = [];
        const observation = new NameService(client, '/names').observe('cache');
        const watching = (async () => {
          for await (const { data } of observation) told.push(data);
        })();
        await observation.ready;
        await bound.set('h1:2');
        await world.world.until(() => told.length === 2, 5000);
        await world.kill(server);
        await world.world.until(() => told.length === 3, 20_000);
        await observation.close();
        await watching;
        expect(told).toEqual(['h1:1', 'h1:2', undefined]);
        await client.close();
      },
      SOLO,
    ));

  test('gives out names and numbers once, whoever asks and whatever is released', () =>
    inWorld(
      3,
      async (world) => {
        const clients = await Promise.all(['a', 'b', 'c'].map((host) => world.connect(host)));
        const services = clients.map((client) => new NameService(client, '/names'));
        const given: string[] = [];
        for (let round = 0; round < 5; round++) {
          const claims = await Promise.all(services.map((names) => names.claim('worker-', 'here')));
          given.push(...claims.map(({ name }) => name));
          expect(await services[0]?.list()).toHaveLength(3);
          await Promise.all(claims.map((claim) => claim.release()));
        }
        expect(new Set(given).size).toBe(15);
        expect(given.every((name) => /^worker-\d{10}$/.test(name))).toBe(true);
        const ids = await Promise.all([...services, ...services].map((names) => names.nextId()));
        expect(ids.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5]);
        await world.world.sleep(1000);
        expect(await services[0]?.list('ids')).toEqual([]);
        await Promise.all(clients.map((client) => client.close()));
      },
      SOLO,
    ));
});
