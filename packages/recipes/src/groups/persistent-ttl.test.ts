import { AbortedError, ConnectionLossError, NoAuthError, Perm, RequestTooLargeError, text } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { runFleet, runSolo } from '../testing/fleet.ts';
import { PersistentTtl } from './persistent-ttl.ts';

describe('a persistent znode with a time to live', () => {
  test('stays while it is kept, bridges a restart, and expires some time after its keeper', () =>
    runSolo(1, async (fleet) => {
      const observer = await fleet.connectAs('observer');
      const keeper = await fleet.connectAs('keeper');
      const kept = new PersistentTtl(keeper, '/leases/printer', { ttlMs: 5000, data: 'one' });
      await kept.whenPresent();
      const first = await observer.get('/leases/printer', { codec: text, read: 'linearizable' });
      expect(first.data).toBe('one');
      expect((await observer.children('/leases/printer')).children).toEqual(['touch']);
      await kept.set('two');
      await fleet.world.sleep(300_000);
      const later = await observer.get('/leases/printer', { codec: text, read: 'linearizable' });
      expect(later.data).toBe('two');
      expect(later.stat.czxid).toBe(first.stat.czxid);
      expect(later.stat.version).toBe(1);

      await fleet.kill(keeper);
      await fleet.world.sleep(2000);
      const again = await fleet.connectAs('keeper');
      const next = new PersistentTtl(again, '/leases/printer', { ttlMs: 5000, data: 'three' });
      await next.whenPresent();
      await fleet.world.sleep(300_000);
      expect((await observer.exists('/leases/printer', { read: 'linearizable' }))?.czxid).toBe(first.stat.czxid);
      await next.close();
      await fleet.world.sleep(300_000);
      expect(await observer.exists('/leases/printer', { read: 'linearizable' })).toBeNull();
      await again.close();
      await observer.close();
    }));

  test('is recreated when it is deleted, and deleted when asked', () =>
    runSolo(2, async (fleet) => {
      const client = await fleet.connectAs('keeper');
      const kept = new PersistentTtl(client, '/a', { ttlMs: 4000, data: 'x' });
      await kept.whenPresent();
      await client.deleteRecursive('/a');
      await fleet.world.sleep(3000);
      expect((await client.get('/a', { codec: text })).data).toBe('x');
      await kept.delete();
      expect(await client.exists('/a')).toBeNull();
      await client.close();
    }));

  test('takes the data that is set while it is deleted', () =>
    runSolo(3, async (fleet) => {
      const [keeper, other] = [await fleet.connectAs('keeper'), await fleet.connectAs('other')];
      const kept = new PersistentTtl(keeper, '/a', { ttlMs: 60_000, data: 'one' });
      await kept.whenPresent();
      await fleet.world.sleep(1000);
      const set = keeper.set.bind(keeper);
      keeper.set = async (...args: Parameters<typeof set>) => {
        keeper.set = set;
        // Between the existence check and the write.
        await other.deleteRecursive('/a');
        return set(...args);
      };
      await kept.set('two');
      expect((await other.get('/a', { codec: text, read: 'linearizable' })).data).toBe('two');
      await kept.close();
      await Promise.all([keeper.close(), other.close()]);
    }));

  test('has its data also when it is deleted during its creation', () =>
    runSolo(5, async (fleet) => {
      const [keeper, other] = [await fleet.connectAs('keeper'), await fleet.connectAs('other')];
      const create = keeper.create.bind(keeper);
      const createParents = keeper.createParents.bind(keeper);
      let deletions = 0;
      /** Between the creation of the znode and that of its child. */
      const deleteFirst = async (path: string): Promise<void> => {
        if (path === '/leases/printer/touch' && deletions++ === 0) await other.deleteRecursive('/leases/printer');
      };
      keeper.create = async (...args: Parameters<typeof create>) => {
        await deleteFirst(args[0]);
        return create(...args);
      };
      keeper.createParents = async (...args: Parameters<typeof createParents>) => {
        await deleteFirst(args[0]);
        return createParents(...args);
      };
      const kept = new PersistentTtl(keeper, '/leases/printer', { ttlMs: 60_000, data: 'one' });
      await kept.whenPresent();
      expect(deletions).toBeGreaterThan(0);
      expect((await other.get('/leases/printer', { codec: text, read: 'linearizable' })).data).toBe('one');
      await kept.close();
      await Promise.all([keeper.close(), other.close()]);
    }));

  test('rejects set with the reason when it is no longer kept', () =>
    runSolo(8, async (fleet) => {
      const client = await fleet.connectAs('keeper');
      const kept = new PersistentTtl(client, '/a', { ttlMs: 4000 });
      await kept.whenPresent();
      await client.setAcl('/a/touch', [{ scheme: 'world', id: 'anyone', perms: Perm.read }]);
      await fleet.world.sleep(3000);
      await expect(kept.set('x')).rejects.toThrow(NoAuthError);
      await expect(kept.whenPresent()).rejects.toThrow(NoAuthError);
      await kept.close();
      await client.close();
    }));

  test('exists once it is given data that servers accept', () =>
    runSolo(9, async (fleet) => {
      const client = await fleet.connectAs('keeper', { requestBytesMax: 8 * 1024 * 1024 });
      let losses = 0;
      client.onState(({ state }) => {
        if (state === 'suspended') losses++;
      });
      const kept = new PersistentTtl(client, '/a', { ttlMs: 60_000, data: 'x'.repeat(2_000_000) });
      await fleet.world.sleep(60_000);
      expect(losses).toBeLessThan(20);
      await kept.set('small', { timeoutMs: 20_000 });
      await kept.whenPresent({ timeoutMs: 20_000 });
      expect((await client.get('/a', { codec: text })).data).toBe('small');
      await kept.close();
      await client.close();
    }));

  test('rejects data that makes servers close the connection', () =>
    runSolo(6, async (fleet) => {
      // The servers accept 1 MiB.
      const client = await fleet.connectAs('keeper', { requestBytesMax: 8 * 1024 * 1024 });
      const kept = new PersistentTtl(client, '/a', { ttlMs: 60_000, data: 'one' });
      await kept.whenPresent();
      const large = kept.set('x'.repeat(2_000_000), { timeoutMs: 60_000 });
      await expect(large).rejects.toThrow(RequestTooLargeError);
      expect((await client.get('/a', { codec: text })).data).toBe('one');
      await client.deleteRecursive('/a');
      await fleet.world.sleep(60_000);
      expect((await client.get('/a', { codec: text })).data).toBe('one');
      await kept.set('two');
      expect((await client.get('/a', { codec: text })).data).toBe('two');
      await kept.close();
      await client.close();
    }));

  test('is not left behind by a set that is about to create it while it is deleted', () =>
    runSolo(4, async (fleet) => {
      const keeper = await fleet.connectAs('keeper');
      const kept = new PersistentTtl(keeper, '/leases/printer', { ttlMs: 60_000, data: 'one' });
      await kept.whenPresent();
      await fleet.world.sleep(1000);
      await keeper.deleteRecursive('/leases');
      const createParents = keeper.createParents.bind(keeper);
      let release = (): void => {};
      const gate = new Promise<void>((resolve) => {
        release = resolve;
      });
      keeper.createParents = async (...args: Parameters<typeof createParents>) => {
        await gate;
        return createParents(...args);
      };
      const setting = expect(kept.set('two')).rejects.toThrow(AbortedError);
      await kept.delete();
      release();
      await setting;
      expect(await keeper.exists('/leases/printer', { read: 'linearizable' })).toBeNull();
      await keeper.close();
    }));

  test('keeps what was set last, and is not recreated by pending calls after its deletion', () =>
    runFleet(
      7,
      async (fleet) => {
        const observer = await fleet.connectAs('observer');
        const keeper = await fleet.connectAs('keeper');
        const kept = new PersistentTtl(keeper, '/leases/printer', { ttlMs: 5000, data: 'zero' });
        await kept.whenPresent();
        const { network } = fleet.world;
        const cut = (): void => {
          network.block('keeper', 'zk1');
          network.block('zk1', 'keeper');
        };
        cut();
        const waiting = kept.set('one');
        await fleet.world.until(() => keeper.state !== 'connected', 60_000);
        const last = kept.set('two');
        network.heal();
        await Promise.all([waiting, last]);
        const { data } = await observer.get('/leases/printer', { codec: text, read: 'linearizable' });
        expect(data).toBe('two');

        cut();
        const late = expect(kept.set('three')).rejects.toThrow(AbortedError);
        await fleet.world.until(() => keeper.state !== 'connected', 60_000);
        const deleting = kept.delete();
        network.heal();
        await Promise.all([late, deleting]);
        await fleet.world.sleep(1000);
        expect(await observer.exists('/leases/printer', { read: 'linearizable' })).toBeNull();
        await Promise.all([keeper.close(), observer.close()]);
      },
      { servers: 1, core: { extendedTypesEnabled: true } },
    ));

  test('rejects data that makes servers close the connection also if the initial data does so', () =>
    runSolo(10, async (fleet) => {
      const client = await fleet.connectAs('keeper', { requestBytesMax: 8 * 1024 * 1024 });
      let losses = 0;
      client.onState(({ state }) => {
        if (state === 'suspended') losses++;
      });
      const kept = new PersistentTtl(client, '/a', { ttlMs: 60_000, data: 'x'.repeat(2_000_000) });
      await fleet.world.sleep(20_000);
      const large = kept.set('y'.repeat(2_000_000), { timeoutMs: 120_000 });
      await expect(large).rejects.toThrow(RequestTooLargeError);
      expect(losses).toBeLessThan(40);
      // Nor has that ended it.
      await kept.set('small', { timeoutMs: 60_000 });
      expect((await client.get('/a', { codec: text })).data).toBe('small');
      await kept.close();
      await client.close();
    }));

  test('does not take occasional lost connections for a refusal', () =>
    runSolo(11, async (fleet) => {
      const client = await fleet.connectAs('keeper');
      const kept = new PersistentTtl(client, '/a', { ttlMs: 60_000 });
      await kept.whenPresent();
      const set = client.set.bind(client);
      for (let i = 0; i < 8; i++) {
        client.set = async () => {
          client.set = set;
          throw new ConnectionLossError({ operation: 'set', path: '/a' });
        };
        await kept.set('x'.repeat(10_000));
      }
      await kept.close();
      await client.close();
    }));

  test('is recreated with a copy of its data, so that the caller may write to its bytes', () =>
    runSolo(12, async (fleet) => {
      const client = await fleet.connectAs('keeper');
      const bytes = new TextEncoder().encode('one');
      const kept = new PersistentTtl(client, '/a', { ttlMs: 4000, data: bytes });
      await kept.whenPresent();
      bytes.fill(0);
      await client.deleteRecursive('/a');
      await fleet.world.sleep(10_000);
      expect((await client.get('/a', { codec: text })).data).toBe('one');
      await kept.close();
      await client.close();
    }));

  test('keeps the data that was set before refused data', () =>
    runSolo(13, async (fleet) => {
      const client = await fleet.connectAs('keeper');
      const kept = new PersistentTtl(client, '/a', { ttlMs: 60_000, data: 'one' });
      await kept.whenPresent();
      const set = client.set.bind(client);
      let refused: Promise<void> | null = null;
      client.set = async () => {
        client.set = set;
        refused = expect(kept.set('x'.repeat(2_000_000))).rejects.toThrow(RequestTooLargeError);
        throw new ConnectionLossError({ operation: 'set', path: '/a', outcome: 'not-applied' });
      };
      await kept.set('two');
      await refused;
      expect((await client.get('/a', { codec: text })).data).toBe('two');
      expect(kept.data).toBe('two');
      await kept.close();
      await client.close();
    }));
});
