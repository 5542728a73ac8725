import { ConnectionLossError, Perm, RequestTooLargeError, text } from '@meerkat/client';
import { describe, expect, test, vi } from 'vitest';
import { runSolo } from '../testing/fleet.ts';
import { PersistentEphemeral } from './persistent-ephemeral.ts';

describe('the data of a persistent ephemeral', () => {
  test('is the new data, also in the znode that is recreated after session loss', () =>
    runSolo(3, async (fleet) => {
      const client = await fleet.connectAs('app');
      const other = await fleet.connectAs('other');
      await using presence = new PersistentEphemeral(client, '/a', { data: 'one' });
      await presence.whenPresent();
      await presence.set('two');
      expect((await other.get('/a', { codec: text, read: 'linearizable' })).data).toBe('two');
      const first = client.session?.id;
      fleet.world.network.partition(['app'], ['zk1']);
      await fleet.world.until(() => client.state === 'lost', 20_000);
      expect(presence.isPresent).toBe(false);
      expect(presence.presence).toMatchObject({ isPresent: false, reason: 'session-lost' });
      const written = presence.set('three');
      await fleet.world.sleep(10_000);
      fleet.world.network.heal();
      await written;
      await presence.whenPresent();
      expect(client.session?.id).not.toBe(first);
      const { data, stat } = await other.get('/a', { codec: text, read: 'linearizable' });
      expect(data).toBe('three');
      expect(stat.ephemeralOwner).toBe(client.session?.id);
      await presence.close();
      await client.close();
      await other.close();
    }));

  test("is not written to another client's znode that has just replaced its own", () =>
    runSolo(9, async (fleet) => {
      const client = await fleet.connectAs('app');
      const other = await fleet.connectAs('other');
      await using presence = new PersistentEphemeral(client, '/a', { data: 'one' });
      await presence.whenPresent();
      await presence.set('two');
      const set = vi.spyOn(client, 'set');
      set.mockImplementationOnce(async (...write) => {
        // Between its read and its write.
        await other.transaction().delete('/a').create('/a', 'theirs', { mode: 'ephemeral' }).commit();
        return client.set(...write);
      });
      presence.set('three').catch(() => {});
      await fleet.world.until(() => !presence.isPresent && set.mock.calls.length > 0, 5000);
      expect(presence.presence).toMatchObject({ reason: 'taken' });
      const { data, stat } = await other.get('/a', { codec: text });
      expect([data, stat.version]).toEqual(['theirs', 0]);
      set.mockRestore();
      await presence.close();
      await Promise.all([client.close(), other.close()]);
    }));

  test('is accepted as written under an ACL without WRITE permission when the reply to its creation was lost', () =>
    runSolo(12, async (fleet) => {
      const client = await fleet.connectAs('app');
      const acl = [{ scheme: 'world', id: 'anyone', perms: Perm.read }];
      const create = client.createParents.bind(client);
      client.createParents = async (...made) => {
        client.createParents = create;
        await create(...made);
        throw new ConnectionLossError({ operation: 'createParents', path: '/a' });
      };
      const presence = new PersistentEphemeral(client, '/a', { data: 'x', acl });
      const token = await presence.whenPresent({ timeoutMs: 5000 });
      expect((await client.exists('/a'))?.czxid).toBe(token);
      await presence.close();
      expect(await client.exists('/a')).toBeNull();
      await client.close();
    }));

  test('stays when the service refuses new data, and accepts the next', () =>
    runSolo(14, async (fleet) => {
      const client = await fleet.connectAs('app');
      const other = await fleet.connectAs('other');
      const presence = new PersistentEphemeral(client, '/a', { data: 'one' });
      const token = await presence.whenPresent();
      await presence.set('two');
      const large = 'x'.repeat(2_000_000);
      const refused = [presence.set(large), presence.set(large)].map((set) =>
        expect(set).rejects.toThrow(RequestTooLargeError),
      );
      await Promise.all(refused);
      expect(presence.token).toBe(token);
      expect(presence.data).toBe('two');
      // The recreated znode has the data that was accepted last.
      await other.delete('/a');
      await fleet.world.until(() => presence.isPresent && presence.token !== token, 5000);
      expect((await other.get('/a', { codec: text, read: 'linearizable' })).data).toBe('two');
      await presence.set('four');
      expect((await other.get('/a', { codec: text, read: 'linearizable' })).data).toBe('four');
      await presence.close();
      await Promise.all([client.close(), other.close()]);
    }));

  test.each(['deleted', 'replaced'])('is restored when new data is refused while the znode is %s', (what) =>
    runSolo(15, async (fleet) => {
      const client = await fleet.connectAs('app');
      const other = await fleet.connectAs('other');
      const presence = new PersistentEphemeral(client, '/a', { data: 'one', whenTaken: 'replace' });
      const token = await presence.whenPresent();
      await other.delete('/a');
      // Before the event of the deletion arrives.
      if (what === 'replaced') void other.create('/a', 'theirs', { mode: 'ephemeral' }).catch(() => {});
      await expect(presence.set('x'.repeat(2_000_000))).rejects.toThrow(RequestTooLargeError);
      await fleet.world.until(() => presence.isPresent && presence.token !== token, 10_000);
      const { data, stat } = await other.get('/a', { codec: text, read: 'linearizable' });
      expect([data, stat.ephemeralOwner]).toEqual(['one', client.session?.id]);
      await presence.set('two');
      expect((await other.get('/a', { codec: text, read: 'linearizable' })).data).toBe('two');
      await presence.close();
      await Promise.all([client.close(), other.close()]);
    }),
  );

  test.each(['before', 'while'])('is the initial data when new data is refused %s it is created', (when) =>
    runSolo(16, async (fleet) => {
      const client = await fleet.connectAs('app');
      const refused: Promise<void>[] = [];
      const setLarge = (): void => {
        const setting = presence.set('x'.repeat(2_000_000));
        refused.push(expect(setting).rejects.toThrow(RequestTooLargeError));
      };
      if (when === 'while') {
        // The reply to the creation is lost.
        const create = client.createParents.bind(client);
        client.createParents = async (...made) => {
          client.createParents = create;
          await create(...made);
          setLarge();
          throw new ConnectionLossError({ operation: 'createParents', path: '/a' });
        };
      }
      const presence = new PersistentEphemeral(client, '/a', { data: 'one' });
      if (when === 'before') setLarge();
      await fleet.world.until(() => refused.length > 0, 5000);
      await Promise.all(refused);
      await presence.whenPresent({ timeoutMs: 5000 });
      expect((await client.get('/a', { codec: text })).data).toBe('one');
      await presence.set('two');
      expect((await client.get('/a', { codec: text })).data).toBe('two');
      await presence.close();
      await client.close();
    }),
  );

  test('cannot be written when the initial data is refused, and that ends it', () =>
    runSolo(17, async (fleet) => {
      const client = await fleet.connectAs('app');
      const presence = new PersistentEphemeral(client, '/a', { data: 'x'.repeat(2_000_000) });
      await expect(presence.whenPresent()).rejects.toThrow(RequestTooLargeError);
      await presence.close();
      await client.close();
    }));

  test('stays when servers close the connection because of new data', () =>
    runSolo(19, async (fleet) => {
      // The servers accept 1 MiB.
      const client = await fleet.connectAs('app', { requestBytesMax: 8 * 1024 * 1024 });
      const presence = new PersistentEphemeral(client, '/a', { data: 'one' });
      const token = await presence.whenPresent();
      await expect(presence.set('x'.repeat(2_000_000), { timeoutMs: 60_000 })).rejects.toThrow(RequestTooLargeError);
      await presence.whenPresent();
      expect(presence.token).toBe(token);
      expect((await client.get('/a', { codec: text })).data).toBe('one');
      await presence.set('two');
      expect((await client.get('/a', { codec: text })).data).toBe('two');
      await presence.close();
      await client.close();
    }));

  test('is what servers accept once that is set, after they closed connections because of the initial data', () =>
    runSolo(22, async (fleet) => {
      const client = await fleet.connectAs('app', { requestBytesMax: 8 * 1024 * 1024 });
      let losses = 0;
      client.onState(({ state }) => {
        if (state === 'suspended') losses++;
      });
      const presence = new PersistentEphemeral(client, '/a', { data: 'x'.repeat(2_000_000) });
      await fleet.world.sleep(60_000);
      expect(losses).toBeLessThan(20);
      await presence.set('small', { timeoutMs: 20_000 });
      expect((await client.get('/a', { codec: text })).data).toBe('small');
      await presence.close();
      await client.close();
    }));

  test('is a copy, so that the caller may write to its bytes', () =>
    runSolo(21, async (fleet) => {
      const client = await fleet.connectAs('app');
      const bytes = new TextEncoder().encode('one');
      const presence = new PersistentEphemeral(client, '/a', { data: bytes });
      const token = await presence.whenPresent();
      bytes.fill(0x78);
      await client.delete('/a');
      await fleet.world.until(() => presence.isPresent && presence.token !== token, 5000);
      expect((await client.get('/a', { codec: text })).data).toBe('one');
      await presence.close();
      await client.close();
    }));

  test('may be what was refused, when an earlier attempt may have been applied', () =>
    runSolo(22, async (fleet) => {
      const client = await fleet.connectAs('app');
      const presence = new PersistentEphemeral(client, '/a', { data: 'one' });
      await presence.whenPresent();
      const set = client.set.bind(client);
      client.set = async (...args: Parameters<typeof set>) => {
        client.set = set;
        await set(...args);
        await client.setAcl('/a', [{ scheme: 'world', id: 'anyone', perms: Perm.read }]);
        throw new ConnectionLossError({ operation: 'set', path: '/a' });
      };
      await expect(presence.set('two')).rejects.toMatchObject({ code: 'NOAUTH', outcome: 'unknown' });
      await presence.close();
      await client.close();
    }));
});
