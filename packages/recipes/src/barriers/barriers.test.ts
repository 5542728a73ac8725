import { type Client, ConnectionLossError, nullableBytes, text, type ZooKeeperError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { Fleet } from '../testing/fleet.ts';
import { FrameCounter } from '../testing/frame-counter.ts';
import { makeWorld } from '../testing/line-world.ts';
import { Barrier } from './barrier.ts';
import { CountDownLatch } from './count-down-latch.ts';
import { CyclicBarrier } from './cyclic-barrier.ts';
import { DoubleBarrier } from './double-barrier.ts';
import { readMeeting, writeMeeting } from './meeting-record.ts';
import { Rendezvous } from './rendezvous.ts';

function inWorld(program: (fleet: Fleet, clients: Client[]) => Promise<void>, clientCount = 3): () => Promise<void> {
  return async () => {
    const fleet = new Fleet(1, 1);
    await fleet.run(async () => program(fleet, await fleet.connectAll(clientCount)));
  };
}

function makeGate(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((onResolve) => {
    resolve = onResolve;
  });
  return { promise, resolve };
}

/** The client, but for its first deletions: they or their replies are lost, which is told after a while. */
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

/** Tells whether a promise has settled by now. */
function watched(promise: Promise<unknown>): { isSettled: boolean } {
  const state = { isSettled: false };
  const settle = (): void => {
    state.isSettled = true;
  };
  promise.then(settle, settle);
  return state;
}

describe('a barrier', () => {
  test(
    'stops those who come while it stands, and lets all go on when it is removed',
    inWorld(async (fleet, clients) => {
      const [first, ...others] = clients.map((client) => new Barrier(client, '/a/barrier'));
      await first!.wait();
      await first!.set();
      await first!.set();
      expect(await others[0]!.isSet()).toBe(true);
      const waits = others.map((barrier) => barrier.wait());
      const states = waits.map(watched);
      await expect(first!.wait({ timeoutMs: 100 })).rejects.toMatchObject({ code: 'TIMEOUT' });
      await fleet.world.sleep(5000);
      expect(states.map(({ isSettled }) => isSettled)).toEqual([false, false]);
      await first!.remove();
      await Promise.all(waits);
      await first!.remove();
      expect(await first!.isSet()).toBe(false);
    }),
  );

  test(
    'lets through who waited when it was removed and put up again at once',
    inWorld(async (fleet, [client, other]) => {
      const barrier = new Barrier(client!, '/barrier');
      await barrier.set();
      const waiting = new Barrier(other!, '/barrier').wait();
      await fleet.world.sleep(100);
      await client!.transaction().delete('/barrier').create('/barrier').commit();
      await waiting;
      expect(await barrier.isSet()).toBe(true);
    }),
  );
});

describe('a barrier whose remover does not hear of it', () => {
  test(
    'is not removed again when somebody has put it up meanwhile',
    inWorld(async (_, [client, other]) => {
      const barrier = new Barrier(client!, '/barrier');
      await barrier.set();
      const remove = client!.delete.bind(client);
      client!.delete = async (path, options) => {
        client!.delete = remove;
        await remove(path, options);
        await new Barrier(other!, '/barrier').set();
        throw new ConnectionLossError({ operation: 'delete', path, outcome: 'unknown' });
      };
      await barrier.remove();
      expect(await barrier.isSet()).toBe(true);
      client!.delete = async (path) => {
        throw new ConnectionLossError({ operation: 'delete', path, outcome: 'unknown' });
      };
      await expect(barrier.remove({ timeoutMs: 100 })).rejects.toMatchObject({ outcome: 'unknown' });
    }),
  );
});

describe('a double barrier', () => {
  test(
    'lets in when all are there, and out when all are done, round after round',
    inWorld(async (fleet, clients) => {
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
    }),
  );

  test(
    'does not wait for who has died inside, nor count who has died before',
    inWorld(async (fleet, [a, b, c, d]) => {
      const barriers = [a!, b!, c!, d!].map((client) => new DoubleBarrier(client, '/barrier', 3));
      void barriers[0]!.enter().catch(() => {});
      await fleet.world.sleep(100);
      await a!.close();
      const entering = [barriers[1]!.enter(), barriers[2]!.enter()];
      const states = entering.map(watched);
      await fleet.world.sleep(500);
      expect(states.map(({ isSettled }) => isSettled)).toEqual([false, false]);
      const third = await barriers[3]!.enter();
      const [first] = await Promise.all(entering);
      const leaving = first!.leave();
      await c!.close();
      await third.leave();
      await leaving;
    }, 4),
  );

  test.each(['request', 'reply'] as const)(
    'keeps a member whose session counted as lost and came back, when the %s of the first removal is lost',
    (lost) =>
      inWorld(async (fleet, [a, b]) => {
        const client = withUnluckyDeletes(a!, 2, lost, () => fleet.world.sleep(1500));
        const waiting = new DoubleBarrier(client, '/barrier', 2).enter();
        await fleet.world.sleep(1000);
        const sessionId = a!.session?.id;
        const { lostSignal } = a!;
        // A service that is away for longer than the session timeout keeps its sessions.
        const [server] = fleet.ensemble.servers;
        server!.crash();
        await fleet.world.sleep(6000);
        expect(lostSignal.aborted).toBe(true);
        server!.start();
        await Promise.all([a!.whenConnected(), b!.whenConnected()]);
        expect(a!.session?.id).toBe(sessionId);
        const other = await new DoubleBarrier(b!, '/barrier', 2).enter();
        const inside = await waiting;
        await fleet.world.sleep(10_000);
        expect([inside.isHeld, other.isHeld]).toEqual([true, true]);
        expect((await b!.children('/barrier', { read: 'linearizable' })).children).toHaveLength(3);
        await Promise.all([inside.leave(), other.leave()]);
        expect((await b!.children('/barrier', { read: 'linearizable' })).children).toEqual([]);
      })(),
  );

  test(
    'keeps a member that came again after a lost session when another one comes through the same object',
    inWorld(async (fleet, [client, other]) => {
      const barrier = new DoubleBarrier(client!, '/barrier', 2);
      const first = barrier.enter();
      await fleet.world.sleep(1000);
      const { lostSignal } = client!;
      const [server] = fleet.ensemble.servers;
      server!.crash();
      await fleet.world.sleep(6000);
      expect(lostSignal.aborted).toBe(true);
      server!.start();
      await Promise.all([client!.whenConnected(), other!.whenConnected()]);
      const inside = await Promise.all([first, new DoubleBarrier(other!, '/barrier', 2).enter()]);
      const late = await barrier.enter();
      await fleet.world.sleep(1000);
      expect(inside.map(({ isHeld }) => isHeld)).toEqual([true, true]);
      await Promise.all([...inside, late].map((member) => member.leave()));
    }),
  );

  test(
    'does not hold who is late to leave for those who wait for the next round',
    inWorld(async (_, [a, b, c]) => {
      const [first, second, third] = [a!, b!, c!].map((client) => new DoubleBarrier(client, '/barrier', 3));
      const inside = await Promise.all([first!.enter(), second!.enter(), third!.enter()]);
      // Somebody has deleted the first member's znode: the others do not wait for it.
      const { children } = await a!.children('/barrier');
      const owned = await Promise.all(children.map((name) => a!.exists(`/barrier/${name}`)));
      const own = children[owned.findIndex((stat) => stat?.ephemeralOwner === a!.session?.id)];
      await b!.delete(`/barrier/${own}`);
      await Promise.all([inside[1]!.leave(), inside[2]!.leave()]);
      const entering = [second!.enter(), third!.enter()];
      while ((await a!.children('/barrier')).children.length < 2) await a!.sync();
      await inside[0]!.leave();
      await first!.enter();
      await Promise.all(entering);
    }),
  );

  test(
    'begins a new round when all of the last one have died inside',
    inWorld(async (fleet, [a, b, c, d]) => {
      await Promise.all([a!, b!].map((client) => new DoubleBarrier(client, '/barrier', 2).enter()));
      await Promise.all([a!.close(), b!.close()]);
      expect((await c!.children('/barrier')).children).toEqual(['ready']);
      const entering = new DoubleBarrier(c!, '/barrier', 2).enter();
      const state = watched(entering);
      await fleet.world.sleep(1000);
      expect(state.isSettled).toBe(false);
      await new DoubleBarrier(d!, '/barrier', 2).enter();
      await entering;
    }, 4),
  );

  test(
    'leaves nothing behind when a wait is given up',
    inWorld(async (fleet, [client]) => {
      const barrier = new DoubleBarrier(client!, '/barrier', 2);
      for (const timeoutMs of [0, 1, 2, 3, 4, 5, 6, 8, 10, 20, 50]) {
        await expect(barrier.enter({ timeoutMs })).rejects.toMatchObject({ code: 'TIMEOUT' });
      }
      await fleet.world.sleep(1000);
      expect((await client!.children('/barrier')).children).toEqual([]);
    }),
  );

  test(
    'waits for the others once more when a wait to leave was given up',
    inWorld(async (fleet, clients) => {
      const entering = clients.map((client) => new DoubleBarrier(client, '/barrier', 3).enter());
      const [a, b, c] = await Promise.all(entering);
      const impatient = expect(a!.leave({ timeoutMs: 500 })).rejects.toMatchObject({ code: 'TIMEOUT' });
      const patient = watched(a!.leave());
      await impatient;
      const again = a!.leave();
      const state = watched(again);
      await expect(a!.leave({ timeoutMs: 500 })).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'unknown' });
      await b!.leave({ timeoutMs: 500 }).catch(() => {});
      await fleet.world.sleep(1000);
      expect([state.isSettled, patient.isSettled, a!.isHeld, c!.isHeld]).toEqual([false, false, false, true]);
      await c!.leave();
      await Promise.all([again, a!.leave(), b!.leave()]);
      expect((await clients[0]!.children('/barrier')).children).toEqual([]);
    }),
  );

  test(
    'lets whoever has given up waiting for the others go on behind its scope',
    inWorld(async (_, clients) => {
      const entering = clients.map((client) => new DoubleBarrier(client, '/barrier', 3).enter());
      const [a] = await Promise.all(entering);
      const work = async (): Promise<void> => {
        await using inside = a!;
        await inside.leave({ timeoutMs: 500 });
      };
      await expect(work()).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'unknown' });
    }),
  );

  test(
    'cannot tell whether it was counted when it is given up after its znode was made',
    inWorld(async (fleet, [a, b]) => {
      const barrier = new DoubleBarrier(a!, '/barrier', 2);
      await expect(barrier.enter({ timeoutMs: 0 })).rejects.toMatchObject({ outcome: 'not-applied' });
      const entering = barrier.enter();
      const ended = expect(entering).rejects.toMatchObject({ code: 'CLOSED', outcome: 'unknown' });
      await fleet.world.sleep(1000);
      await a!.close();
      await ended;
      const first = new DoubleBarrier(b!, '/barrier', 1);
      const inside = await first.enter();
      await expect(inside.leave({ timeoutMs: 0 })).rejects.toMatchObject({ outcome: 'unknown' });
    }),
  );

  test(
    'does not leave alone by the list of a server that is behind its round',
    inWorld(async (fleet, [a, b, c]) => {
      const [entering, ...others] = [a!, b!, c!].map((client) => new DoubleBarrier(client, '/barrier', 3));
      const first = entering!.enter();
      await fleet.world.sleep(1000);
      const before = await a!.children('/barrier');
      expect(before.children).toHaveLength(1);
      await Promise.all(others.map((barrier) => barrier.enter()));
      const inside = await first;
      const children = a!.children.bind(a);
      // As another server may show it, which has not come as far as the one whose event has let it in.
      a!.children = (async (path: string, options: { readonly read?: string } = {}) => {
        return options.read === 'linearizable' ? children(path, options as never) : before;
      }) as Client['children'];
      const state = watched(inside.leave());
      await fleet.world.sleep(1000);
      expect(state.isSettled).toBe(false);
    }),
  );

  test(
    'lets nobody in where all have died between its look and its coming',
    inWorld(async (fleet, [a, b, c, d]) => {
      await c!.ensurePath('/barrier');
      const { promise: funeral, resolve: bury } = makeGate();
      const transaction = c!.transaction.bind(c);
      let isComing = false;
      c!.transaction = () => {
        const made = transaction();
        const commit = made.commit.bind(made);
        made.commit = async (options) => {
          isComing = true;
          await funeral;
          return commit(options);
        };
        return made;
      };
      const entering = new DoubleBarrier(c!, '/barrier', 2).enter();
      const state = watched(entering);
      await fleet.world.until(() => isComing, 10_000);
      await Promise.all([a!, b!].map((client) => new DoubleBarrier(client, '/barrier', 2).enter()));
      await Promise.all([a!.close(), b!.close()]);
      bury();
      await fleet.world.sleep(1000);
      expect(state.isSettled).toBe(false);
      const second = await new DoubleBarrier(d!, '/barrier', 2).enter();
      expect((await entering).round).toBe(second.round);
    }, 4),
  );

  test(
    'lets in who comes when it is open, and waits for it',
    inWorld(async (fleet, [a, b, c]) => {
      const inside = await Promise.all([a!, b!].map((client) => new DoubleBarrier(client, '/barrier', 2).enter()));
      const late = await new DoubleBarrier(c!, '/barrier', 2).enter();
      expect(late.round).toBe(inside[0]!.round);
      const leaving = inside.map((member) => member.leave());
      const states = leaving.map(watched);
      await fleet.world.sleep(1000);
      expect(states.map(({ isSettled }) => isSettled)).toEqual([false, false]);
      await Promise.all([late.leave(), ...leaving]);
      expect((await a!.children('/barrier')).children).toEqual([]);
    }),
  );

  test('costs each member three requests to come in and four to leave', async () => {
    const { world, ensemble } = makeWorld();
    const members = 10;
    await world.run(async () => {
      const counter = new FrameCounter();
      const clients = await counter.connectAll(world, ensemble, members);
      await clients[0]!.ensurePath('/barrier');
      counter.clear();
      const inside = await Promise.all(clients.map((client) => new DoubleBarrier(client, '/barrier', members).enter()));
      // A look at `ready`, the own znode, a watch of it. The last one lists them all, and makes `ready`.
      expect(counter.requests).toBe(3 * members + 2);
      expect(counter.events).toBe(members);
      counter.clear();
      await Promise.all(inside.map((member) => member.leave()));
      // A list, the watch of the lowest, the deletion, a list when the lowest is gone. The lowest asks two things for each
      // who is the highest when it looks, and those are few when all leave at once.
      expect(counter.requests).toBeLessThanOrEqual(4 * members + 8);
      // Of its own deletion, and of that of the one it waits for.
      expect(counter.events).toBeLessThanOrEqual(2 * members + 4);
    });
  });

  test('wakes one member for each that leaves', async () => {
    const fleet = new Fleet(1, 1);
    const members = 20;
    await fleet.run(async () => {
      const clients = await fleet.connectAll(members);
      let lists = 0;
      for (const client of clients) {
        const children = client.children.bind(client);
        client.children = ((path: string, options: object) => {
          lists++;
          return children(path, options as never);
        }) as typeof client.children;
      }
      const inside = await Promise.all(clients.map((client) => new DoubleBarrier(client, '/barrier', members).enter()));
      // Before it makes its znode and after: nobody is woken before all are there.
      expect(lists).toBeLessThanOrEqual(3 * members);
      lists = 0;
      const leaving: Promise<void>[] = [];
      for (const member of inside) {
        leaving.push(member.leave());
        await fleet.world.sleep(100);
      }
      await Promise.all(leaving);
      // At the call, after its own deletion, at the end; and the lowest once for each who leaves.
      expect(lists).toBeLessThanOrEqual(5 * members);
    });
  });
});

describe('a rendezvous', () => {
  test(
    'shows each what all have brought, in the order of their arrival',
    inWorld(async (fleet, clients) => {
      for (let round = 0; round < 3; round++) {
        const meetings = await Promise.all(
          clients.map(async (client, i) => {
            await fleet.world.sleep(100 * i);
            return new Rendezvous(client, '/meeting', 3, { codec: text }).meet(`${round} ${i}`);
          }),
        );
        expect(meetings.map(({ values }) => values)).toEqual(Array(3).fill([0, 1, 2].map((i) => `${round} ${i}`)));
        expect(meetings.map(({ index }) => index)).toEqual([0, 1, 2]);
        expect(new Set(meetings.map(({ round: zxid }) => zxid)).size).toBe(1);
        await fleet.world.sleep(1000);
        expect((await clients[0]!.children('/meeting')).children).toEqual([]);
      }
    }),
  );

  test(
    'does not count who has given up, and lets more than one group meet',
    inWorld(async (fleet, clients) => {
      const meet = (i: number, value: string, timeoutMs?: number) =>
        new Rendezvous(clients[i]!, '/meeting', 2, { codec: text }).meet(value, { timeoutMs });
      await expect(meet(0, 'gone', 100)).rejects.toMatchObject({ code: 'TIMEOUT' });
      await fleet.world.sleep(100);
      const meetings = await Promise.all([0, 1, 2, 0, 1, 2].map((i, k) => meet(i, `${k}`)));
      const groups = meetings.map(({ values }) => values.join());
      for (const [k, { values, index }] of meetings.entries()) {
        expect(values).toHaveLength(2);
        expect(values[index]).toBe(`${k}`);
      }
      expect(new Set(groups).size).toBe(3);
    }),
  );

  test(
    'cannot tell whether others have met with it when it is given up after its arrival',
    inWorld(async (fleet, [client]) => {
      await client!.ensurePath('/meeting');
      const outcomes = new Set<string>();
      for (let timeoutMs = 0; timeoutMs < 12; timeoutMs += 0.5) {
        const arrived = (await client!.exists('/meeting'))!.cversion;
        const meeting = new Rendezvous(client!, '/meeting', 1).meet(new Uint8Array(), { timeoutMs });
        const outcome = await meeting.then(
          () => 'met',
          (error: ZooKeeperError) => error.outcome,
        );
        outcomes.add(outcome);
        await fleet.world.sleep(1000);
        const hasArrived = (await client!.exists('/meeting'))!.cversion > arrived;
        if (hasArrived) expect(outcome).not.toBe('not-applied');
      }
      expect(outcomes).toEqual(new Set(['not-applied', 'unknown', 'met']));
    }, 1),
  );

  test(
    'does not count twice who has given up and comes again, though its first arrival is still there',
    inWorld(async (fleet, [client, other]) => {
      const { promise: delay, resolve: goOn } = makeGate();
      const remove = client!.delete.bind(client);
      client!.delete = async (path, options) => {
        client!.delete = remove;
        await delay;
        return remove(path, options);
      };
      const rendezvous = new Rendezvous(client!, '/meeting', 2, { codec: text });
      await expect(rendezvous.meet('first', { timeoutMs: 1000 })).rejects.toMatchObject({ outcome: 'unknown' });
      const meeting = rendezvous.meet('second');
      await fleet.world.sleep(1000);
      expect((await other!.children('/meeting')).children).toHaveLength(1);
      await new Rendezvous(other!, '/meeting', 2, { codec: text }).meet('other');
      expect((await meeting).values).toEqual(['second', 'other']);
      goOn();
      await fleet.world.sleep(1000);
      expect((await other!.children('/meeting')).children).toEqual([]);
    }, 2),
  );

  test('writes its record as it is described', () => {
    const record = Uint8Array.of(0, 0, 0, 2, 0, 0, 0, 1, 0x61, 0, 0, 0, 2, 7, 8, 0, 0, 0, 1, 0x62, 255, 255, 255, 255);
    const arrivals = [
      { name: 'a', data: Uint8Array.of(7, 8) },
      { name: 'b', data: null },
    ];
    expect(writeMeeting(arrivals)).toEqual(record);
    expect(readMeeting(record)).toEqual(arrivals);
    expect(() => readMeeting(record.subarray(0, 14))).toThrow(RangeError);
  });
});

describe('a cyclic barrier', () => {
  test(
    'opens for so many at once, again and again',
    inWorld(async (_, clients) => {
      const seen: bigint[] = [];
      for (let round = 0; round < 4; round++) {
        const passages = await Promise.all(clients.map((client) => new CyclicBarrier(client, '/steps', 3).wait()));
        expect(passages.map(({ index }) => index).sort()).toEqual([0, 1, 2]);
        const rounds = new Set(passages.map((passage) => passage.round));
        expect(rounds.size).toBe(1);
        seen.push(...rounds);
      }
      expect(seen).toEqual(seen.toSorted((a, b) => (a < b ? -1 : 1)));
    }),
  );
});

describe('a count-down latch', () => {
  test(
    'is not opened by somebody who wanted it to begin at 0, and comes too late to make it',
    inWorld(async (fleet, [client, other]) => {
      const get = client!.get.bind(client);
      client!.get = (async (path: string, options: object) => {
        client!.get = get;
        const missing = await get(path, options as never).catch((error: unknown) => error);
        await new CountDownLatch(other!, '/latch', 2).count();
        throw missing;
      }) as Client['get'];
      const state = watched(new CountDownLatch(client!, '/latch', 0).wait());
      await fleet.world.sleep(1000);
      expect(state.isSettled).toBe(false);
      expect((await other!.children('/latch')).children).not.toContain('open');
      // One that was left half made opens, too.
      await other!.create('/half', '0');
      await new CountDownLatch(client!, '/half', 0).wait({ timeoutMs: 5000 });
    }),
  );

  test(
    'is not opened by who counts while it is deleted',
    inWorld(async (fleet, [client, other]) => {
      await new CountDownLatch(other!, '/latch', 3).countDown();
      const get = client!.get.bind(client);
      client!.get = (async (path: string, options: object) => {
        client!.get = get;
        const read = await get(path, options as never);
        await other!.deleteRecursive('/latch');
        return read;
      }) as Client['get'];
      expect(await new CountDownLatch(client!, '/latch', 3).countDown()).toBe(2);
      const state = watched(new CountDownLatch(other!, '/latch', 3).wait());
      await fleet.world.sleep(1000);
      expect(state.isSettled).toBe(false);
    }),
  );

  test(
    'is not made of a znode that is none',
    inWorld(async (_, [client]) => {
      await client!.create('/other', '');
      const latch = new CountDownLatch(client!, '/other', 3);
      await expect(latch.wait({ timeoutMs: 5000 })).rejects.toThrow('is no latch');
      await expect(latch.countDown()).rejects.toThrow('is no latch');
    }),
  );

  test(
    'opens for all when everybody has counted',
    inWorld(async (fleet, clients) => {
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
    }),
  );
});
