import { type Acl, type Client, ConnectionLossError, Perm, ThrottledError } from '@meerkat/client';
import { describe, expect, test, vi } from 'vitest';
import { aroundCommits } from '../testing/commits.ts';
import { Fleet, withClients } from '../testing/fleet.ts';
import { FrameCounter } from '../testing/frame-counter.ts';
import { watched } from '../testing/watched.ts';
import { DoubleBarrier } from './double-barrier.ts';
import type { Inside } from './inside.ts';

function makeGate(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((onResolve) => {
    resolve = onResolve;
  });
  return { promise, resolve };
}

/** The client, except that its first deletions or their replies are lost, which is reported after a while. */
function withUnluckyDeletes(
  client: Client,
  count: number,
  lost: 'request' | 'reply',
  wait: () => Promise<void>,
): Client {
  let left = count;
  return new Proxy(client, {
    get: (target, key) => {
      const member: unknown = Reflect.get(target, key, target);
      if (typeof member !== 'function') return member;
      if (key !== 'delete' || left === 0) return member.bind(target);
      return async (path: string): Promise<never> => {
        left--;
        if (lost === 'reply') await target.delete(path);
        await wait();
        throw new ConnectionLossError({ operation: key, path });
      };
    },
  });
}

describe('a double barrier', () => {
  test(
    'lets all in when enough members are there, and out when all have left, round after round',
    withClients(async (fleet, ...clients) => {
      for (const layout of ['curator', 'kazoo'] as const) {
        const path = `/${layout}`;
        const rounds = new Set<bigint>();
        for (let round = 0; round < 3; round++) {
          const entering = clients.map((client) => new DoubleBarrier(client, path, 3, { layout }));
          const first = entering[0]!.enter();
          const state = watched(first);
          await fleet.world.sleep(1000);
          expect(state.isSettled).toBe(false);
          const inside = await Promise.all([first, entering[1]!.enter(), entering[2]!.enter()]);
          for (const member of inside) rounds.add(member.round);
          expect(rounds.size).toBe(round + 1);
          const leaving = [inside[0]!.leave(), inside[1]!.leave()];
          const states = leaving.map(watched);
          await fleet.world.sleep(1000);
          expect(states.map(({ isSettled }) => isSettled)).toEqual([false, false]);
          expect(inside[2]!.isHeld).toBe(true);
          await Promise.all([...leaving, inside[2]!.leave()]);
          expect((await clients[0]!.children(path)).children).toEqual([]);
        }
      }
    }, 3),
  );

  test(
    'does not wait for members that died inside, nor count those that died before',
    withClients(async (fleet, a, b, c, d) => {
      const barriers = [a, b, c, d].map((client) => new DoubleBarrier(client, '/barrier', 3));
      void barriers[0]!.enter().catch(() => {});
      await fleet.world.sleep(100);
      await a.close();
      const entering = [barriers[1]!.enter(), barriers[2]!.enter()];
      const states = entering.map(watched);
      await fleet.world.sleep(500);
      expect(states.map(({ isSettled }) => isSettled)).toEqual([false, false]);
      const third = await barriers[3]!.enter();
      const [first] = await Promise.all(entering);
      const leaving = first!.leave();
      await c.close();
      await third.leave();
      await leaving;
    }, 4),
  );

  test.each(['request', 'reply'] as const)(
    'keeps a member whose session counted as lost and came back, when the %s of the first removal is lost',
    (lost) =>
      withClients(async (fleet, a, b) => {
        const client = withUnluckyDeletes(a, 2, lost, () => fleet.world.sleep(1500));
        const waiting = new DoubleBarrier(client, '/barrier', 2).enter();
        await fleet.world.sleep(1000);
        const sessionId = a.session?.id;
        const { lostSignal } = a!;
        // A service that is down for longer than the session timeout keeps its sessions.
        const [server] = fleet.ensemble.servers;
        server!.crash();
        await fleet.world.sleep(6000);
        expect(lostSignal.aborted).toBe(true);
        server!.start();
        await Promise.all([a.whenConnected(), b.whenConnected()]);
        expect(a.session?.id).toBe(sessionId);
        const other = await new DoubleBarrier(b, '/barrier', 2).enter();
        const inside = await waiting;
        await fleet.world.sleep(10_000);
        expect([inside.isHeld, other.isHeld]).toEqual([true, true]);
        expect((await b.children('/barrier', { read: 'linearizable' })).children).toHaveLength(3);
        await Promise.all([inside.leave(), other.leave()]);
        expect((await b.children('/barrier', { read: 'linearizable' })).children).toEqual([]);
      }, 3)(),
  );

  test(
    'keeps a member that entered again after session loss when another one enters through the same object',
    withClients(async (fleet, client, other) => {
      const barrier = new DoubleBarrier(client, '/barrier', 2);
      const first = barrier.enter();
      await fleet.world.sleep(1000);
      const { lostSignal } = client!;
      const [server] = fleet.ensemble.servers;
      server!.crash();
      await fleet.world.sleep(6000);
      expect(lostSignal.aborted).toBe(true);
      server!.start();
      await Promise.all([client.whenConnected(), other.whenConnected()]);
      const inside = await Promise.all([first, new DoubleBarrier(other, '/barrier', 2).enter()]);
      const late = await barrier.enter();
      await fleet.world.sleep(1000);
      expect(inside.map(({ isHeld }) => isHeld)).toEqual([true, true]);
      await Promise.all([...inside, late].map((member) => member.leave()));
    }, 3),
  );

  test(
    'does not make a late leaver wait for members of the next round',
    withClients(async (_, a, b, c) => {
      const barrierOf = (client: Client): DoubleBarrier => new DoubleBarrier(client, '/barrier', 3);
      const [first, second, third] = [barrierOf(a), barrierOf(b), barrierOf(c)];
      const inside = await Promise.all([first.enter(), second.enter(), third.enter()]);
      // The znode of the first member was deleted: the others do not wait for it.
      const { children } = await a.children('/barrier');
      const owned = await Promise.all(children.map((name) => a.exists(`/barrier/${name}`)));
      const own = children[owned.findIndex((stat) => stat?.ephemeralOwner === a.session?.id)];
      await b.delete(`/barrier/${own}`);
      await Promise.all([inside[1]!.leave(), inside[2]!.leave()]);
      const entering = [second.enter(), third.enter()];
      while ((await a.children('/barrier')).children.length < 2) await a.sync();
      await inside[0]!.leave();
      await first.enter();
      await Promise.all(entering);
    }, 3),
  );

  test(
    'begins a new round when all members of the last one have died inside',
    withClients(async (fleet, a, b, c, d) => {
      await Promise.all([a, b].map((client) => new DoubleBarrier(client, '/barrier', 2).enter()));
      await Promise.all([a.close(), b.close()]);
      expect((await c.children('/barrier')).children).toEqual(['ready']);
      const entering = new DoubleBarrier(c, '/barrier', 2).enter();
      const state = watched(entering);
      await fleet.world.sleep(1000);
      expect(state.isSettled).toBe(false);
      await new DoubleBarrier(d, '/barrier', 2).enter();
      await entering;
    }, 4),
  );

  test(
    'leaves nothing behind when a wait is cancelled',
    withClients(async (fleet, client) => {
      const barrier = new DoubleBarrier(client, '/barrier', 2);
      for (const timeoutMs of [0, 1, 2, 3, 4, 5, 6, 8, 10, 20, 50]) {
        await expect(barrier.enter({ timeoutMs })).rejects.toMatchObject({ code: 'TIMEOUT' });
      }
      await fleet.world.sleep(1000);
      expect((await client.children('/barrier')).children).toEqual([]);
    }, 3),
  );

  test(
    'waits for the others again after a cancelled leave',
    withClients(async (fleet, first, second, third) => {
      const enter = (client: Client): Promise<Inside> => new DoubleBarrier(client, '/barrier', 3).enter();
      const [a, b, c] = await Promise.all([enter(first), enter(second), enter(third)]);
      const impatient = expect(a.leave({ timeoutMs: 500 })).rejects.toMatchObject({ code: 'TIMEOUT' });
      const patient = watched(a.leave());
      await impatient;
      const again = a.leave();
      const state = watched(again);
      await expect(a.leave({ timeoutMs: 500 })).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'unknown' });
      await b.leave({ timeoutMs: 500 }).catch(() => {});
      await fleet.world.sleep(1000);
      expect([state.isSettled, patient.isSettled, a.isHeld, c.isHeld]).toEqual([false, false, false, true]);
      await c.leave();
      await Promise.all([again, a.leave(), b.leave()]);
      expect((await first.children('/barrier')).children).toEqual([]);
    }, 3),
  );

  test(
    'does not wait at the end of the scope after a cancelled leave',
    withClients(async (_, ...clients) => {
      const entering = clients.map((client) => new DoubleBarrier(client, '/barrier', 3).enter());
      const [a] = await Promise.all(entering);
      const work = async (): Promise<void> => {
        await using inside = a!;
        await inside.leave({ timeoutMs: 500 });
      };
      await expect(work()).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'unknown' });
    }, 3),
  );

  test(
    'reports an unknown outcome when it is cancelled after its znode was created',
    withClients(async (fleet, a, b) => {
      const barrier = new DoubleBarrier(a, '/barrier', 2);
      await expect(barrier.enter({ timeoutMs: 0 })).rejects.toMatchObject({ outcome: 'not-applied' });
      const entering = barrier.enter();
      const ended = expect(entering).rejects.toMatchObject({ code: 'CLOSED', outcome: 'unknown' });
      await fleet.world.sleep(1000);
      await a.close();
      await ended;
      const first = new DoubleBarrier(b, '/barrier', 1);
      const inside = await first.enter();
      await expect(inside.leave({ timeoutMs: 0 })).rejects.toMatchObject({ outcome: 'unknown' });
    }, 3),
  );

  test(
    'reports not-applied when its znode is refused, and unknown if an earlier znode may have been counted',
    withClients(async (fleet, client, other) => {
      const read: Acl = { scheme: 'world', id: 'anyone', perms: Perm.read };
      await other.create('/barrier', '', { acl: [{ ...read, perms: Perm.all & ~Perm.create }] });
      const barrier = new DoubleBarrier(client, '/barrier', 2);
      await expect(barrier.enter()).rejects.toMatchObject({ code: 'NOAUTH', outcome: 'not-applied' });
      await other.setAcl('/barrier', [{ ...read, perms: Perm.all }]);
      const entering = expect(barrier.enter()).rejects.toMatchObject({ code: 'NOAUTH', outcome: 'unknown' });
      await fleet.world.sleep(1000);
      const [name] = (await other.children('/barrier')).children;
      await other.setAcl('/barrier', [{ ...read, perms: Perm.all & ~Perm.create }]);
      await other.delete(`/barrier/${name}`);
      await entering;
    }, 3),
  );

  test(
    'keeps no state of cancelled calls',
    withClients(async (fleet, client) => {
      const allSettled = vi.spyOn(Promise, 'allSettled');
      const barrier = new DoubleBarrier(client, '/barrier', 2);
      for (let i = 0; i < 5; i++) await barrier.enter({ timeoutMs: 100 }).catch(() => {});
      await fleet.world.sleep(1000);
      const { results } = allSettled.mock;
      allSettled.mockRestore();
      const pairs = await Promise.all(results.map(({ value }) => value as Promise<PromiseSettledResult<unknown>[]>));
      const removals = pairs.flat().map((result) => (result.status === 'fulfilled' ? result.value : null));
      expect(removals.length).toBeGreaterThan(5);
      expect(removals.filter((removal) => Array.isArray(removal))).toEqual([]);
    }, 3),
  );

  test(
    'does not hammer an overloaded server',
    withClients(async (fleet, client, other) => {
      let attempts = 0;
      let isBusy = true;
      aroundCommits(client, async (commit) => {
        attempts++;
        // It answers at once, without having tried it.
        await client.exists('/');
        if (isBusy) throw new ThrottledError({ operation: 'transaction', path: null });
        return commit();
      });
      const entering = new DoubleBarrier(client, '/barrier', 2).enter();
      await fleet.world.sleep(1000);
      expect(attempts).toBeLessThan(100);
      isBusy = false;
      await Promise.all([entering, new DoubleBarrier(other, '/barrier', 2).enter()]);
    }, 3),
  );

  test(
    'is not counted when it is cancelled before its znode was created, whatever it waited for',
    withClients(async (fleet, a, b, c, d) => {
      const barrierOf = (client: Client): DoubleBarrier => new DoubleBarrier(client, '/barrier', 2);
      const [first, second] = [barrierOf(a), barrierOf(b)];
      await Promise.all([first.enter(), second.enter()]);
      await new DoubleBarrier(c, '/barrier', 2).enter();
      await Promise.all([a.close(), b.close()]);
      const barrier = new DoubleBarrier(d, '/barrier', 2);
      const early = barrier.enter({ timeoutMs: 1000 });
      await expect(early).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
      await c.close();
      const counted = expect(barrier.enter({ timeoutMs: 1000 })).rejects.toMatchObject({ outcome: 'unknown' });
      await fleet.world.sleep(900);
      const { network } = fleet.world;
      network.block('client4', 'zk1');
      network.block('zk1', 'client4');
      await counted;
      // It waits until the znode of the cancelled call is removed.
      const again = barrier.enter({ timeoutMs: 1000 });
      await expect(again).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
      network.heal();
    }, 4),
  );

  test(
    'does not end the round when another member enters just before',
    withClients(async (fleet, a, b, c) => {
      const [first, second] = await Promise.all(
        [a, b].map((client) => new DoubleBarrier(client, '/barrier', 2).enter()),
      );
      let late: Inside | null = null;
      const restore = aroundCommits(a, async (commit) => {
        restore();
        late = await new DoubleBarrier(c, '/barrier', 2).enter();
        return commit();
      });
      const leaving = [first!.leave(), second!.leave()];
      await fleet.world.until(() => late !== null, 60_000);
      expect(late!.round).toBe(first!.round);
      const state = watched(Promise.all(leaving));
      await fleet.world.sleep(1000);
      expect(state.isSettled).toBe(false);
      await late!.leave();
      await Promise.all(leaving);
    }, 3),
  );

  test(
    'does not leave early because of a list from a server that lags behind its round',
    withClients(async (fleet, a, b, c) => {
      const [entering, ...others] = [a, b, c].map((client) => new DoubleBarrier(client, '/barrier', 3));
      const first = entering!.enter();
      await fleet.world.sleep(1000);
      const before = await a.children('/barrier');
      expect(before.children).toHaveLength(1);
      await Promise.all(others.map((barrier) => barrier.enter()));
      const inside = await first;
      const children = a.children.bind(a);
      // As shown by another server that lags behind the one whose event has let it in.
      a.children = (async (path: string, options: { readonly read?: string } = {}) => {
        return options.read === 'linearizable' ? children(path, options as never) : before;
      }) as Client['children'];
      const state = watched(inside.leave());
      await fleet.world.sleep(1000);
      expect(state.isSettled).toBe(false);
    }, 3),
  );

  test(
    'lets no client in when all members die before its znode is created',
    withClients(async (fleet, a, b, c, d) => {
      await c.ensurePath('/barrier');
      const { promise: funeral, resolve: bury } = makeGate();
      let isComing = false;
      aroundCommits(c, async (commit) => {
        isComing = true;
        await funeral;
        return commit();
      });
      const entering = new DoubleBarrier(c, '/barrier', 2).enter();
      const state = watched(entering);
      await fleet.world.until(() => isComing, 10_000);
      await Promise.all([a, b].map((client) => new DoubleBarrier(client, '/barrier', 2).enter()));
      await Promise.all([a.close(), b.close()]);
      bury();
      await fleet.world.sleep(1000);
      expect(state.isSettled).toBe(false);
      const second = await new DoubleBarrier(d, '/barrier', 2).enter();
      expect((await entering).round).toBe(second.round);
    }, 4),
  );

  test(
    'lets a late member in while it is open, and waits for it',
    withClients(async (fleet, a, b, c) => {
      const inside = await Promise.all([a, b].map((client) => new DoubleBarrier(client, '/barrier', 2).enter()));
      const late = await new DoubleBarrier(c, '/barrier', 2).enter();
      expect(late.round).toBe(inside[0]!.round);
      const leaving = inside.map((member) => member.leave());
      const states = leaving.map(watched);
      await fleet.world.sleep(1000);
      expect(states.map(({ isSettled }) => isSettled)).toEqual([false, false]);
      await Promise.all([late.leave(), ...leaving]);
      expect((await a.children('/barrier')).children).toEqual([]);
    }, 3),
  );

  test(
    'fails for a member whose data is too large for the servers, and then stops retrying',
    withClients(async (fleet) => {
      const client = await fleet.connect({ requestBytesMax: 8 * 1024 * 1024 });
      await client.ensurePath('/barrier');
      const barrier = new DoubleBarrier(client, '/barrier', 1, { data: new Uint8Array(1_500_000) });
      await expect(barrier.enter()).rejects.toMatchObject({
        code: 'REQUESTTOOLARGE',
        outcome: 'unknown',
        operation: 'DoubleBarrier.enter',
        path: '/barrier',
      });
      await fleet.world.sleep(1000);
      const states: string[] = [];
      client.onState(({ state }) => states.push(state));
      await fleet.world.sleep(20_000);
      expect(states).toEqual([]);
      expect((await client.children('/barrier')).children).toEqual([]);
    }, 0),
  );

  test('costs each member three requests to enter and four to leave', async () => {
    const { world, ensemble } = new Fleet(1, { servers: 1 });
    const members = 10;
    await world.run(async () => {
      const counter = new FrameCounter();
      const clients = await counter.connectAll(world, ensemble, members);
      await clients[0]!.ensurePath('/barrier');
      counter.clear();
      const inside = await Promise.all(clients.map((client) => new DoubleBarrier(client, '/barrier', members).enter()));
      // A look at `ready`, its own znode, a watch on `ready`. The last one lists all members, and creates `ready`.
      expect(counter.requests).toBe(3 * members + 2);
      expect(counter.events).toBe(members);
      counter.clear();
      await Promise.all(inside.map((member) => member.leave()));
      // A list, the watch of the lowest, the deletion, a list when the lowest is gone. The lowest sends two requests
      // per member that is the highest when it looks, and those are few when all leave at once.
      expect(counter.requests).toBeLessThanOrEqual(4 * members + 8);
      // For its own deletion, and for that of the member it waits for.
      expect(counter.events).toBeLessThanOrEqual(2 * members + 4);
    });
  });

  test(
    'wakes one member for each that leaves',
    withClients(async (fleet, ...clients) => {
      let lists = 0;
      for (const client of clients) {
        const children = client.children.bind(client);
        client.children = ((path: string, options: object) => {
          lists++;
          return children(path, options as never);
        }) as typeof client.children;
      }
      const inside = await Promise.all(clients.map((client) => new DoubleBarrier(client, '/barrier', 20).enter()));
      // Before and after it creates its znode: no client is woken before all are there.
      expect(lists).toBeLessThanOrEqual(3 * 20);
      lists = 0;
      const leaving = inside.map((member, i) => fleet.world.sleep(100 * i).then(() => member.leave()));
      await Promise.all(leaving);
      // At the call, after its own deletion, at the end; and the lowest once per leaving member.
      expect(lists).toBeLessThanOrEqual(5 * 20);
    }, 20),
  );
});
