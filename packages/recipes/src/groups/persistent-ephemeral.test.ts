import { type Client, ConnectionLossError, NodeExistsError, TimeoutError, text } from '@meerkat/client';
import { describe, expect, test, vi } from 'vitest';
import { aroundNextCommit } from '../testing/commits.ts';
import { runSolo } from '../testing/fleet.ts';
import { PersistentEphemeral } from './persistent-ephemeral.ts';

describe('a persistent ephemeral', () => {
  test('exists with its data and parents until it is closed', () =>
    runSolo(1, async (fleet) => {
      const client = await fleet.connectAs('app');
      const presence = new PersistentEphemeral(client, '/services/search/a', { data: 'host1:8080' });
      expect(presence.isPresent).toBe(false);
      const token = await presence.whenPresent();
      expect(presence.isPresent).toBe(true);
      const { data, stat } = await client.get('/services/search/a', { codec: text });
      expect(data).toBe('host1:8080');
      expect(stat.ephemeralOwner).toBe(client.session?.id);
      expect(token).toBe(stat.czxid);
      expect(presence.token).toBe(stat.czxid);
      await presence.close();
      expect(presence.isPresent).toBe(false);
      expect(await client.exists('/services/search/a')).toBeNull();
      await client.close();
    }));

  test('is recreated when it is deleted', () =>
    runSolo(2, async (fleet) => {
      const client = await fleet.connectAs('app');
      await using presence = new PersistentEphemeral(client, '/a');
      const token = await presence.whenPresent();
      const { signal } = presence.presence as { signal: AbortSignal };
      const seen: boolean[] = [];
      const watching = (async () => {
        for await (const { isPresent } of presence) seen.push(isPresent);
      })();
      await client.delete('/a');
      await fleet.world.until(() => presence.token !== token && presence.isPresent, 5000);
      expect(presence.token).toBeGreaterThan(token);
      expect(signal.aborted).toBe(true);
      await presence.close();
      await watching;
      expect(seen[0]).toBe(true);
      expect(seen.at(-1)).toBe(false);
      await client.close();
    }));

  test('is not present from the deletion event on, even if no server answers then', () =>
    runSolo(10, async (fleet) => {
      const client = await fleet.connectAs('app');
      const other = await fleet.connectAs('other');
      await using presence = new PersistentEphemeral(client, '/a');
      await presence.whenPresent();
      await fleet.world.sleep(100);
      const { signal } = presence.presence as { signal: AbortSignal };
      let breakOff = (): void => {};
      const exists = vi.spyOn(client, 'exists').mockImplementation(
        () =>
          new Promise((_, reject) => {
            breakOff = () => reject(new ConnectionLossError({ operation: 'exists', path: '/a' }));
          }),
      );
      await other.delete('/a');
      await fleet.world.until(() => exists.mock.calls.length > 0, 5000);
      expect(presence.isPresent).toBe(false);
      expect(presence.presence).toMatchObject({ reason: 'deleted' });
      expect(signal.aborted).toBe(true);
      exists.mockRestore();
      breakOff();
      await presence.whenPresent();
      await presence.close();
      await Promise.all([client.close(), other.close()]);
    }));

  test("is not present while it replaces another client's znode at its path", () =>
    runSolo(11, async (fleet) => {
      const client = await fleet.connectAs('app', { sessionTimeoutMs: 30_000 });
      const other = await fleet.connectAs('other');
      await using presence = new PersistentEphemeral(client, '/a', { whenTaken: 'replace' });
      const token = await presence.whenPresent();
      // It receives no events, and looks again after the next connection.
      fleet.world.network.partition(['app'], ['zk1']);
      for (const end of fleet.world.network.openEnds) end.breakStream();
      await fleet.world.until(() => client.state !== 'connected' && other.state !== 'connected', 5000);
      await other.whenConnected();
      await other.transaction().delete('/a').create('/a', 'theirs', { mode: 'ephemeral' }).commit();
      const { transaction } = client;
      let wasSure: boolean | null = null;
      client.transaction = () => {
        wasSure = presence.isPresent;
        return transaction.call(client);
      };
      fleet.world.network.heal();
      await fleet.world.until(() => presence.isPresent && presence.token !== token, 20_000);
      expect(wasSure).toBe(false);
      await presence.close();
      await Promise.all([client.close(), other.close()]);
    }));

  test('replaces the znode of its previous process at once, found by its owner mark', () =>
    runSolo(4, async (fleet) => {
      const before = await fleet.connectAs('app', { sessionTimeoutMs: 30_000 });
      const old = new PersistentEphemeral(before, '/a', { data: 'old', owner: 'host:1/ä' });
      const oldToken = await old.whenPresent();
      await fleet.kill(before);
      const after = await fleet.connectAs('app');
      const startMs = fleet.world.nowMs;
      await using presence = new PersistentEphemeral(after, '/a', { data: 'new', owner: 'host:1/ä' });
      expect(await presence.whenPresent()).toBeGreaterThan(oldToken);
      expect(fleet.world.nowMs - startMs).toBeLessThan(1000);
      const { data, stat } = await after.get('/a', { codec: text });
      expect(data).toBe('new');
      expect(stat.ephemeralOwner).toBe(after.session?.id);
      expect(stat.version).toBe(0);
      await presence.close();
      await after.close();
    }));

  test('does not fight with another process of the same owner at the speed of the service', () =>
    runSolo(13, async (fleet) => {
      const clients = [await fleet.connectAs('a'), await fleet.connectAs('b')];
      const rivals: PersistentEphemeral[] = [];
      let count = 0;
      const watching = clients.map(async (client) => {
        const presence = new PersistentEphemeral(client, '/a', { owner: 'twice by mistake' });
        rivals.push(presence);
        for await (const { isPresent } of presence) if (isPresent) count++;
      });
      await fleet.world.sleep(10_000);
      expect(count).toBeGreaterThan(2);
      expect(count).toBeLessThan(15);
      for (const presence of rivals) await presence.close();
      await Promise.all(watching);
      await Promise.all(clients.map((client) => client.close()));
    }));

  test('leaves no listeners when it is closed at the moment of its creation', () =>
    runSolo(18, async (fleet) => {
      const client = await fleet.connectAs('app');
      const listeners = countStateListeners(client);
      for (const margin of [0, 1000]) {
        const create = client.createParents.bind(client);
        let closed: Promise<void> | null = null;
        client.createParents = async (...made) => {
          client.createParents = create;
          const created = await create(...made);
          closed = presence.close();
          return created;
        };
        const presence = new PersistentEphemeral(client, '/a', { marginMs: margin });
        await fleet.world.until(() => closed !== null, 5000);
        await closed;
        expect(listeners.count).toBe(0);
      }
      expect(await client.exists('/a')).toBeNull();
      await client.close();
    }));

  test('keeps no listeners of what it was before it was recreated', () =>
    runSolo(19, async (fleet) => {
      const client = await fleet.connectAs('app');
      const listeners = countStateListeners(client);
      await using presence = new PersistentEphemeral(client, '/a');
      let token = await presence.whenPresent();
      const { count } = listeners;
      for (let round = 0; round < 5; round++) {
        await client.delete('/a');
        await fleet.world.until(() => presence.isPresent && presence.token !== token, 5000);
        token = await presence.whenPresent();
      }
      expect(listeners.count).toBe(count);
      await presence.close();
      expect(listeners.count).toBe(0);
      await client.close();
    }));

  test('is present only while that is certain', () =>
    runSolo(20, async (fleet) => {
      const client = await fleet.connectAs('app', { sessionTimeoutMs: 6000 });
      const presence = new PersistentEphemeral(client, '/a');
      await presence.whenPresent();
      fleet.world.network.block('zk1', 'app');
      // A process that is paused: time passes, and no timer has fired.
      const lostAtMs = vi.spyOn(client, 'lostAtMs', 'get').mockReturnValue(0);
      expect(presence.isPresent).toBe(false);
      await expect(presence.whenPresent({ timeoutMs: 100 })).rejects.toThrow(TimeoutError);
      lostAtMs.mockRestore();
      fleet.world.network.heal();
      await presence.whenPresent();
      expect(presence.isPresent).toBe(true);
      await presence.close();
      await client.close();
    }));

  test('learns of its deletion also when all watches were removed', () =>
    runSolo(22, async (fleet) => {
      const client = await fleet.connectAs('app');
      const other = await fleet.connectAs('other');
      const presence = new PersistentEphemeral(client, '/a');
      const token = await presence.whenPresent();
      await client.removeWatches('/a', 'any');
      await fleet.world.sleep(100);
      await other.delete('/a');
      await fleet.world.until(() => presence.isPresent && presence.token !== token, 5000);
      expect(presence.token).toBe((await other.exists('/a', { read: 'linearizable' }))?.czxid);
      await presence.close();
      await Promise.all([client.close(), other.close()]);
    }));

  test('waits many times at once for one signal without warnings on stderr', () =>
    runSolo(23, async (fleet) => {
      const client = await fleet.connectAs('app');
      const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
      const { signal } = new AbortController();
      const presences = Array.from({ length: 20 }, (_, i) => new PersistentEphemeral(client, `/a${i}`));
      await Promise.all(presences.map((presence) => presence.whenPresent({ signal, timeoutMs: 5000 })));
      await Promise.all(presences.map((presence) => presence.close()));
      expect(warned).not.toHaveBeenCalled();
      warned.mockRestore();
      await client.close();
    }));

  test('waits for the znode of its previous process if configured to', () =>
    runSolo(5, async (fleet) => {
      const before = await fleet.connectAs('app', { sessionTimeoutMs: 4000 });
      await new PersistentEphemeral(before, '/a', { owner: 'me' }).whenPresent();
      await fleet.kill(before);
      const after = await fleet.connectAs('app');
      await using presence = new PersistentEphemeral(after, '/a', { owner: 'me', whenStale: 'wait' });
      await expect(presence.whenPresent({ timeoutMs: 500 })).rejects.toThrow(TimeoutError);
      expect(presence.presence).toMatchObject({ reason: 'stale' });
      await presence.whenPresent();
      await presence.close();
      await after.close();
    }));

  test("waits for another client's znode, replaces it or fails, as configured", () =>
    runSolo(6, async (fleet) => {
      const holder = await fleet.connectAs('holder');
      const client = await fleet.connectAs('app');
      const held = new PersistentEphemeral(holder, '/a', { data: 'theirs', owner: 'them' });
      await held.whenPresent();

      const failing = new PersistentEphemeral(client, '/a', { owner: 'me', whenTaken: 'fail' });
      await expect(failing.whenPresent()).rejects.toThrow(NodeExistsError);
      await failing.close();

      const waiting = new PersistentEphemeral(client, '/a', { data: 'mine', owner: 'me' });
      await fleet.world.until(() => !waiting.presence.isPresent && waiting.presence.reason === 'taken', 5000);
      await held.close();
      await waiting.whenPresent();
      await waiting.close();

      await new PersistentEphemeral(holder, '/b', { data: 'theirs' }).whenPresent();
      const replacing = new PersistentEphemeral(client, '/b', { data: 'mine', whenTaken: 'replace' });
      await replacing.whenPresent();
      expect((await client.get('/b', { codec: text })).data).toBe('mine');
      await replacing.close();
      await holder.close();
      await client.close();
    }));

  test('is not present during its margin, and is again with the next reply', () =>
    runSolo(9, async (fleet) => {
      const client = await fleet.connectAs('app', { sessionTimeoutMs: 6000 });
      await using presence = new PersistentEphemeral(client, '/a', { marginMs: 4000 });
      const token = await presence.whenPresent();
      const { signal } = presence.presence as { signal: AbortSignal };
      const lost = client.lostSignal;
      fleet.world.network.block('zk1', 'app');
      await fleet.world.until(() => !presence.isPresent, 20_000);
      await fleet.world.sleep(1);
      expect(signal.aborted).toBe(true);
      expect(lost.aborted).toBe(false);
      expect(presence.token).toBeNull();
      fleet.world.network.heal();
      await presence.whenPresent();
      expect(presence.token).toBe(token);
      expect(lost.aborted).toBe(false);
      await presence.close();
      await client.close();
    }));

  test('queries the service rarely if its margin leaves no time to be present', () =>
    runSolo(24, async (fleet) => {
      const client = await fleet.connectAs('app', { sessionTimeoutMs: 6000 });
      const exists = vi.spyOn(client, 'exists');
      const presence = new PersistentEphemeral(client, '/a', { marginMs: 6000 });
      await expect(presence.whenPresent({ timeoutMs: 10_000 })).rejects.toThrow(TimeoutError);
      expect(await client.exists('/a')).not.toBeNull();
      expect(exists.mock.calls.length).toBeLessThan(10);
      await presence.close();
      await client.close();
    }));

  test('does not touch a znode that is not ephemeral', () =>
    runSolo(7, async (fleet) => {
      const client = await fleet.connectAs('app');
      await client.create('/a', 'kept');
      const presence = new PersistentEphemeral(client, '/a', { whenTaken: 'replace' });
      await expect(presence.whenPresent()).rejects.toThrow(NodeExistsError);
      await presence.close();
      expect((await client.get('/a', { codec: text })).data).toBe('kept');
      await client.close();
    }));

  test('leaves nothing behind when it is closed while its creation is in flight and the connection breaks', () =>
    runSolo(8, async (fleet) => {
      for (const afterMs of [0, 1, 2, 3, 4, 5, 6, 8, 10]) {
        const client = await fleet.connectAs('app');
        const presence = new PersistentEphemeral(client, '/a');
        await fleet.world.sleep(afterMs);
        fleet.world.network.block('zk1', 'app');
        await fleet.world.sleep(3);
        for (const end of fleet.world.network.openEnds) end.breakStream();
        await presence.close();
        fleet.world.network.heal();
        await client.whenConnected();
        await fleet.world.sleep(2000);
        expect(await client.exists('/a', { read: 'linearizable' }), `closed after ${afterMs} ms`).toBeNull();
        await client.close();
      }
    }));

  test('leaves nothing behind when it is closed while the next session replaces an earlier znode', () =>
    runSolo(25, async (fleet) => {
      const before = await fleet.connectAs('app', { sessionTimeoutMs: 30_000 });
      await new PersistentEphemeral(before, '/a', { owner: 'app' }).whenPresent();
      await before.detach();
      const client = await fleet.connectAs('app');
      const { network } = fleet.world;
      const first = client.session?.id;
      let closed: Promise<void> | null = null;
      let presence: PersistentEphemeral | null = null;
      aroundNextCommit(client, async (commit) => {
        network.block('app', 'zk1');
        network.block('zk1', 'app');
        await fleet.world.until(() => client.state === 'lost', 60_000);
        // The service expires the session later than the client considers it lost.
        await fleet.world.sleep(5000);
        network.heal();
        await fleet.world.until(() => client.state === 'connected', 60_000);
        const committed = commit();
        await fleet.world.sleep(0.5);
        closed = presence?.close() ?? null;
        return committed;
      });
      presence = new PersistentEphemeral(client, '/a', { owner: 'app' });
      await fleet.world.until(() => closed !== null, 60_000);
      await closed;
      expect(client.session?.id).not.toBe(first);
      expect(await client.exists('/a', { read: 'linearizable' })).toBeNull();
      await client.close();
    }));
});

/** Counts the listeners that are registered from now on and not removed. */
function countStateListeners(client: Client): { readonly count: number } {
  const onState = client.onState.bind(client);
  const counted = { count: 0 };
  client.onState = (listener) => {
    counted.count++;
    const registered = onState(listener);
    return {
      [Symbol.dispose]: () => {
        counted.count--;
        registered[Symbol.dispose]();
      },
    };
  };
  return counted;
}
