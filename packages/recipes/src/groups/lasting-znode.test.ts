import { AbortedError, ConnectionLossError, NoAuthError, Perm, RequestTooLargeError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { runSolo } from '../testing/fleet.ts';
import { type Registration, ServiceDiscovery } from './service-discovery.ts';

const INSTANCE = { name: 'db', id: 'a', address: 'h', serviceType: 'PERMANENT' } as const;
const PATH = '/services/db/a';

describe('a permanent instance', () => {
  test.each(['PERMANENT', 'DYNAMIC'] as const)('is no longer registered once it is closed (%s)', (serviceType) =>
    runSolo(1, async (fleet) => {
      const client = await fleet.connectAs('server');
      const registration = new ServiceDiscovery(client, '/services').register({ ...INSTANCE, serviceType });
      await registration.whenRegistered();
      await registration.close();
      expect(registration.isRegistered).toBe(false);
      await expect(registration.whenRegistered()).rejects.toThrow(AbortedError);
      await expect(registration.update({ address: 'h2' })).rejects.toThrow(AbortedError);
      expect(await client.exists(PATH)).toBeNull();
      await client.close();
    }),
  );

  test('stays when the previous registration of its id is closed again', () =>
    runSolo(2, async (fleet) => {
      const client = await fleet.connectAs('server');
      const discovery = new ServiceDiscovery(client, '/services');
      await using before = discovery.register(INSTANCE);
      await before.whenRegistered();
      await before.close();
      const registration = discovery.register(INSTANCE);
      await registration.whenRegistered();
      await before.close();
      expect(await client.exists(PATH)).not.toBeNull();
      await registration.close();
      expect(await client.exists(PATH)).toBeNull();
      await client.close();
    }));

  test.each(['applied', 'lost'])(
    'stays when the deletion of its predecessor is retried, whose request was %s',
    (fate) =>
      runSolo(3, async (fleet) => {
        const client = await fleet.connectAs('server');
        const other = await fleet.connectAs('other');
        const before = new ServiceDiscovery(client, '/services').register(INSTANCE);
        await before.whenRegistered();
        const remove = client.delete.bind(client);
        const successors: Registration[] = [];
        client.delete = async (...args: Parameters<typeof remove>) => {
          client.delete = remove;
          if (fate === 'applied') await remove(...args);
          const successor = new ServiceDiscovery(other, '/services').register(INSTANCE);
          successors.push(successor);
          await successor.whenRegistered();
          throw new ConnectionLossError({ operation: 'delete', path: PATH });
        };
        await before.close();
        expect(successors).toHaveLength(1);
        expect(await client.exists(PATH, { read: 'linearizable' })).not.toBeNull();
        await successors[0]?.close();
        expect(await client.exists(PATH, { read: 'linearizable' })).toBeNull();
        await Promise.all([client.close(), other.close()]);
      }),
  );

  test('stays when it is registered while the deletion of its predecessor waits for a connection', () =>
    runSolo(4, async (fleet) => {
      for (const afterMs of [0, 0.5, 1, 1.5, 2, 3, 4]) {
        const client = await fleet.connectAs('server', { sessionTimeoutMs: 30_000 });
        const discovery = new ServiceDiscovery(client, '/services');
        const before = discovery.register(INSTANCE);
        await before.whenRegistered();
        const closed = before.close();
        await fleet.world.sleep(afterMs);
        for (const end of fleet.world.network.openEnds) end.breakStream();
        await closed;
        const registration = discovery.register(INSTANCE);
        await registration.whenRegistered();
        await fleet.world.sleep(3000);
        expect(await client.exists(PATH, { read: 'linearizable' }), `broken after ${afterMs} ms`).not.toBeNull();
        await registration.close();
        expect(await client.exists(PATH, { read: 'linearizable' })).toBeNull();
        await client.close();
      }
    }));

  test('is deleted when it is closed, also if another client has written to it', () =>
    runSolo(5, async (fleet) => {
      const client = await fleet.connectAs('server');
      const other = await fleet.connectAs('other');
      const registration = new ServiceDiscovery(client, '/services').register(INSTANCE);
      await registration.whenRegistered();
      await other.set(PATH, '{"name":"db","id":"a","enabled":false}');
      await registration.close();
      expect(await other.exists(PATH, { read: 'linearizable' })).toBeNull();
      await Promise.all([client.close(), other.close()]);
    }));

  test('rejects close when the service refuses the deletion', () =>
    runSolo(6, async (fleet) => {
      const client = await fleet.connectAs('server');
      await client.createParents('/services/db', '');
      const acl = [{ scheme: 'world', id: 'anyone', perms: Perm.read | Perm.create }];
      await client.setAcl('/services/db', acl);
      const registration = new ServiceDiscovery(client, '/services').register(INSTANCE);
      await registration.whenRegistered();
      // Not awaited.
      void registration.close();
      await expect(registration.close()).rejects.toThrow(NoAuthError);
      await client.close();
    }));

  test('is written also while it is deleted', () =>
    runSolo(7, async (fleet) => {
      const client = await fleet.connectAs('server');
      const other = await fleet.connectAs('other');
      const createParents = client.createParents.bind(client);
      const set = client.set.bind(client);
      client.createParents = async (...args: Parameters<typeof createParents>) => {
        client.createParents = createParents;
        // Another client is faster, and has deleted it before it is written.
        await other.createParents(PATH);
        client.set = async (...write: Parameters<typeof set>) => {
          client.set = set;
          await other.delete(PATH);
          return set(...write);
        };
        return createParents(...args);
      };
      const registration = new ServiceDiscovery(client, '/services').register(INSTANCE);
      await registration.whenRegistered();
      expect(await new ServiceDiscovery(other, '/services').instances('db')).toMatchObject([{ address: 'h' }]);
      await registration.close();
      await Promise.all([client.close(), other.close()]);
    }));

  test('is not deleted with the session of a process that has registered it as dynamic', () =>
    runSolo(8, async (fleet) => {
      const before = await fleet.connectAs('server');
      const dynamic = new ServiceDiscovery(before, '/services').register({ ...INSTANCE, serviceType: 'DYNAMIC' });
      await dynamic.whenRegistered();
      await fleet.kill(before);
      const client = await fleet.connectAs('server');
      const registration = new ServiceDiscovery(client, '/services').register(INSTANCE);
      await registration.whenRegistered();
      await fleet.world.sleep(20_000);
      expect(await client.exists(PATH)).toMatchObject({ isEphemeral: false });
      await registration.close();
      expect(await client.exists(PATH)).toBeNull();
      await client.close();
    }));

  test('is registered once it is updated with data that servers accept', () =>
    runSolo(10, async (fleet) => {
      const client = await fleet.connectAs('server', { requestBytesMax: 8 * 1024 * 1024 });
      let losses = 0;
      client.onState(({ state }) => {
        if (state === 'suspended') losses++;
      });
      const discovery = new ServiceDiscovery(client, '/services');
      const registration = discovery.register<string>({ ...INSTANCE, payload: 'x'.repeat(2_000_000) });
      await fleet.world.sleep(60_000);
      expect(losses).toBeLessThan(20);
      await registration.update({ payload: 'small' }, { timeoutMs: 20_000 });
      await registration.whenRegistered();
      expect(await discovery.instances('db')).toMatchObject([{ payload: 'small' }]);
      await registration.close();
      await client.close();
    }));

  test('stays as it is when servers close the connection for its update', () =>
    runSolo(9, async (fleet) => {
      // The servers accept 1 MiB.
      const client = await fleet.connectAs('server', { requestBytesMax: 8 * 1024 * 1024 });
      const discovery = new ServiceDiscovery(client, '/services');
      const registration = discovery.register<string>(INSTANCE);
      await registration.whenRegistered();
      const update = registration.update({ payload: 'x'.repeat(2_000_000) }, { timeoutMs: 60_000 });
      await expect(update).rejects.toThrow(RequestTooLargeError);
      await registration.update({ address: 'h2' });
      expect(await discovery.instances('db')).toMatchObject([{ address: 'h2', payload: null }]);
      await registration.close();
      await client.close();
    }));

  test('reports an unknown outcome when an update may have been written before it was refused', () =>
    runSolo(15, async (fleet) => {
      const client = await fleet.connectAs('server');
      const registration = new ServiceDiscovery(client, '/services').register(INSTANCE);
      await registration.whenRegistered();
      const set = client.set.bind(client);
      client.set = async (...args: Parameters<typeof set>) => {
        client.set = set;
        await set(...args);
        await client.setAcl(PATH, [{ scheme: 'world', id: 'anyone', perms: Perm.read }]);
        throw new ConnectionLossError({ operation: 'set', path: PATH });
      };
      await expect(registration.update({ address: 'h2' })).rejects.toMatchObject({
        code: 'NOAUTH',
        outcome: 'unknown',
      });
      await registration.close();
      await client.close();
    }));

  test('is registered although a later update was refused', () =>
    runSolo(11, async (fleet) => {
      const client = await fleet.connectAs('server');
      const registration = new ServiceDiscovery(client, '/services').register<string>(INSTANCE);
      const update = expect(registration.update({ payload: 'x'.repeat(2_000_000) })).rejects.toThrow(
        RequestTooLargeError,
      );
      await registration.whenRegistered();
      await update;
      await registration.close();
      await client.close();
    }));

  test('removes no other registration when it is closed before anything was sent', () =>
    runSolo(12, async (fleet) => {
      const client = await fleet.connectAs('server');
      const other = await fleet.connectAs('other');
      const theirs = new ServiceDiscovery(other, '/services').register(INSTANCE);
      await theirs.whenRegistered();
      const { network } = fleet.world;
      network.block('server', 'zk1');
      network.block('zk1', 'server');
      await fleet.world.until(() => client.state !== 'connected', 60_000);
      await new ServiceDiscovery(client, '/services').register(INSTANCE).close();
      network.heal();
      await client.whenConnected();
      await fleet.world.sleep(3000);
      expect(await other.exists(PATH, { read: 'linearizable' })).not.toBeNull();
      await theirs.close();
      await Promise.all([client.close(), other.close()]);
    }));

  test('keeps a registration that was made after it was deleted by hand', () =>
    runSolo(13, async (fleet) => {
      const client = await fleet.connectAs('server');
      const other = await fleet.connectAs('other');
      const registration = new ServiceDiscovery(client, '/services').register(INSTANCE);
      await registration.whenRegistered();
      await other.delete(PATH);
      const theirs = new ServiceDiscovery(other, '/services').register(INSTANCE);
      await theirs.whenRegistered();
      await registration.close();
      expect(await other.exists(PATH, { read: 'linearizable' })).not.toBeNull();
      await theirs.close();
      await Promise.all([client.close(), other.close()]);
    }));

  test('reports why an update was refused, also when nothing can be written any longer', () =>
    runSolo(14, async (fleet) => {
      const client = await fleet.connectAs('server', { requestBytesMax: 8 * 1024 * 1024 });
      const registration = new ServiceDiscovery(client, '/services').register<string>(INSTANCE);
      await registration.whenRegistered();
      await client.setAcl(PATH, [{ scheme: 'world', id: 'anyone', perms: Perm.read }]);
      const update = registration.update({ payload: 'x'.repeat(2_000_000) }, { timeoutMs: 60_000 });
      await expect(update).rejects.toThrow(RequestTooLargeError);
      await registration.close();
      await client.close();
    }));
});
