import { BadVersionError, type Client, ConnectionLossError, NoAuthError, NodeExistsError, Perm } from '@meerkat/client';
import { describe, expect, test, vi } from 'vitest';
import { doubtClient } from '../testing/doubted-client.ts';
import { runSolo } from '../testing/fleet.ts';
import { NameService } from './name-service.ts';

describe('a name service', () => {
  test('binds, resolves, changes by version, lists and frees names', () =>
    runSolo(1, async (fleet) => {
      const client = await fleet.connectAs('app');
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
    }));

  test('binds a name to an address while its process lives, and notifies others of changes', () =>
    runSolo(2, async (fleet) => {
      const server = await fleet.connectAs('server');
      const client = await fleet.connectAs('client');
      const bound = new NameService(server, '/names').bindWhileAlive('cache', 'h1:1', 'host1');
      await bound.whenPresent();
      const received: (string | undefined)[] = [];
      const observation = new NameService(client, '/names').observe('cache');
      const watching = (async () => {
        for await (const { data } of observation) received.push(data);
      })();
      await observation.ready;
      await bound.set('h1:2');
      await fleet.world.until(() => received.length === 2, 5000);
      await fleet.kill(server);
      await fleet.world.until(() => received.length === 3, 20_000);
      await observation.close();
      await watching;
      expect(received).toEqual(['h1:1', 'h1:2', undefined]);
      await client.close();
    }));

  test('allocates names and numbers once, across clients and releases', () =>
    runSolo(3, async (fleet) => {
      const clients = await Promise.all(['a', 'b', 'c'].map((host) => fleet.connectAs(host)));
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
      await fleet.world.sleep(1000);
      expect(await services[0]?.list('ids')).toEqual([]);
      await Promise.all(clients.map((client) => client.close()));
    }));

  test('allocates no name again after all names and bindings are deleted', () =>
    runSolo(6, async (fleet) => {
      const client = await fleet.connectAs('app');
      const names = new NameService(client, '/names');
      const bound = names.bindWhileAlive('workers/leader', 'h:1');
      await bound.whenPresent();
      const first = await names.claim('workers/w-');
      await first.release();
      await bound.close();
      // Long enough for the service to delete empty containers.
      await fleet.world.sleep(300_000);
      const second = await names.claim('workers/w-');
      expect(second.id).toBeGreaterThan(first.id);
      await client.close();
    }));

  test('is claimed as long as its session lives, also after a server without a quorum', () =>
    runSolo(8, async (fleet) => {
      const client = await fleet.connectAs('app');
      // As for a claim that waits for a connection, while the session is uncertain for a while.
      const signal = vi.spyOn(client, 'lostSignal', 'get').mockReturnValueOnce(AbortSignal.abort());
      const create = client.createProtected.bind(client);
      client.createProtected = (...args: Parameters<typeof create>) => {
        signal.mockRestore();
        return create(...args);
      };
      const claimed = await new NameService(client, '/names').claim('w-');
      expect(claimed.isHeld).toBe(true);
      await client.close();
      expect(claimed.signal.aborted).toBe(true);
    }));

  test('rejects release when the service refuses the deletion', () =>
    runSolo(7, async (fleet) => {
      const client = await fleet.connectAs('app');
      const acl = [{ scheme: 'world', id: 'anyone', perms: Perm.read | Perm.create }];
      await client.create('/names', '', { acl });
      const claimed = await new NameService(client, '/names').claim('w-');
      // Not awaited.
      void claimed.release();
      await expect(claimed.release()).rejects.toThrow(NoAuthError);
      expect(claimed.isHeld).toBe(false);
      await client.close();
      await claimed.release();
    }));
});

/** The fate of a write whose connection breaks. */
type Fate = 'applied' | 'lost';

/** A client whose first `set` or `delete` ends with its connection, while another client does something. */
function unlucky(client: Client, fate: Fate, meanwhile: () => Promise<unknown>): Client {
  let isFirst = true;
  return new Proxy(client, {
    get: (target, key) => {
      const member: unknown = Reflect.get(target, key, target);
      if (typeof member !== 'function') return member;
      if (!isFirst || (key !== 'set' && key !== 'delete')) return member.bind(target);
      return async (...args: unknown[]): Promise<never> => {
        isFirst = false;
        if (fate === 'applied') await Reflect.apply(member, target, args);
        // Earlier requests are answered first.
        else await target.ping();
        await meanwhile();
        throw new ConnectionLossError({ operation: key, path: String(args[0]) });
      };
    },
  });
}

describe('a name service whose connection breaks', () => {
  const nothing = async (): Promise<void> => {};
  const UNKNOWN = { code: 'CONNECTIONLOSS', outcome: 'unknown' };

  /** With 'db' bound to 'a:1', and two clients; the first is unlucky with its next write. */
  const withTwo = (
    program: (one: (fate: Fate, meanwhile: () => Promise<unknown>) => NameService, two: NameService) => Promise<void>,
  ) =>
    runSolo(4, async (fleet) => {
      const client = await fleet.connectAs('one');
      const other = await fleet.connectAs('two');
      await new NameService(client, '/names').bind('db', 'a:1');
      await program(
        (fate, meanwhile) => new NameService(unlucky(client, fate, meanwhile), '/names'),
        new NameService(other, '/names'),
      );
      await client.close();
      await other.close();
    });

  test('retries the unbind when the request was lost', () =>
    withTwo(async (one, two) => {
      await one('lost', nothing).unbind('db', { version: 0 });
      expect(await two.resolve('db')).toBeNull();
    }));

  test('leaves a name alone that was rebound with the same version', () =>
    withTwo(async (one, two) => {
      const bindAnew = (): Promise<unknown> => two.bind('db', 'b:1');
      await expect(one('applied', bindAnew).unbind('db', { version: 0 })).rejects.toMatchObject(UNKNOWN);
      expect(await two.lookUp('db')).toMatchObject({ address: 'b:1', stat: { version: 0 } });
      const takeOver = async (): Promise<void> => {
        await two.unbind('db', { version: 0 });
        await two.bind('db', 'c:1');
      };
      await expect(one('lost', takeOver).unbind('db', { version: 0 })).rejects.toMatchObject(UNKNOWN);
      expect(await two.resolve('db')).toBe('c:1');
      const bindAgain = async (): Promise<void> => {
        await two.unbind('db', { version: 0 });
        await two.bind('db', 'd:1');
      };
      await expect(one('lost', bindAgain).rebind('db', 'a:2', { version: 0 })).rejects.toMatchObject(UNKNOWN);
      expect(await two.resolve('db')).toBe('d:1');
    }));

  test.each([
    ['rebind', (names: NameService) => names.rebind('db', 'a:2', { version: 0 })],
    ['unbind', (names: NameService) => names.unbind('db', { version: 0 })],
  ])('%s leaves a name alone that was bound again before any client told which binding it had', (_method, write) =>
    runSolo(9, async (fleet) => {
      const { network } = fleet.world;
      const client = await fleet.connectAs('one');
      const other = await fleet.connectAs('two');
      const two = new NameService(other, '/names');
      await two.bind('db', 'a:1');
      network.block('one', 'zk1');
      const writing = expect(write(new NameService(client, '/names'))).rejects.toMatchObject(UNKNOWN);
      await two.unbind('db', { version: 0 });
      await two.bind('db', 'b:1');
      for (const end of network.openEnds) if (end.host === 'one') end.breakStream();
      network.heal();
      await writing;
      await client.close();
      expect(await two.lookUp('db')).toMatchObject({ address: 'b:1', stat: { version: 0 } });
      await other.close();
    }),
  );

  test('does not claim to have freed a name that is gone: another client may have', () =>
    withTwo(async (one, two) => {
      const free = (): Promise<void> => two.unbind('db', { version: 0 });
      await expect(one('lost', free).unbind('db', { version: 0 })).rejects.toMatchObject(UNKNOWN);
      await two.bind('db', 'b:1');
      await expect(one('applied', nothing).unbind('db', { version: 0 })).rejects.toMatchObject(UNKNOWN);
    }));

  test('recognizes its own change of a name, and retries it when the request was lost', () =>
    withTwo(async (one, two) => {
      expect(await one('applied', nothing).rebind('db', 'a:2', { version: 0 })).toMatchObject({ version: 1 });
      expect(await one('lost', nothing).rebind('db', 'a:3', { version: 1 })).toMatchObject({ version: 2 });
      expect(await two.lookUp('db')).toMatchObject({ address: 'a:3', stat: { version: 2 } });
    }));

  test('leaves no failed claim behind in a session that comes back', () =>
    runSolo(5, async (fleet) => {
      const client = await fleet.connectAs('app');
      const names = new NameService(client, '/names');
      await client.ensurePath('/names');
      const sessionId = client.session?.id;
      fleet.world.network.block('zk1', 'app');
      const claim = names.claim('worker-', '', { timeoutMs: 4500 }).catch((error: unknown) => error);
      expect(await fleet.world.until(() => client.lostSignal.aborted, 60_000)).toBe(true);
      fleet.world.network.heal();
      expect(await claim).toMatchObject({ outcome: 'unknown' });
      await client.whenConnected();
      expect(client.session?.id).toBe(sessionId);
      await fleet.world.sleep(2000);
      expect(await names.list()).toEqual([]);
      expect((await names.claim('worker-')).id).toBe(1);
      await client.close();
    }));

  test('allocates a name also while the parent is deleted repeatedly', () =>
    runSolo(16, async (fleet) => {
      const client = await fleet.connectAs('app');
      const createProtected = client.createProtected.bind(client);
      let deletions = 0;
      client.createProtected = async (...args: Parameters<typeof createProtected>) => {
        // Between the creation of the parent and that of the name.
        if (deletions++ < 3) await client.deleteRecursive('/names/workers').catch(() => {});
        return createProtected(...args);
      };
      await using claimed = await new NameService(client, '/names').claim('workers/w-');
      expect(claimed.name).toBe('workers/w-0000000000');
      expect(claimed.isHeld).toBe(true);
      expect(deletions).toBe(4);
      await claimed.release();
      await client.close();
    }));

  test('leaves a later claim alone when a claim in doubt is removed late', () =>
    runSolo(17, async (fleet) => {
      const { client, relent } = doubtClient(await fleet.connectAs('app'), '/names/workers');
      const claimed = await new NameService(client, '/names').claim('workers/w-');
      relent();
      // Longer than any pause of the removal.
      await fleet.world.sleep(5000);
      expect(claimed.isHeld).toBe(true);
      expect(await client.exists(claimed.path)).not.toBeNull();
      await client.close();
    }));
});
