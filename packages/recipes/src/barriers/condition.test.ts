import { type Client, text } from '@meerkat/client';
import { expect, test } from 'vitest';
import type { Lock } from '../locks/lock.ts';
import { Mutex } from '../locks/mutex.ts';
import { aroundNextCommit, lostCommit } from '../testing/commits.ts';
import { type Fleet, withClients } from '../testing/fleet.ts';
import { Condition } from './condition.ts';

interface Seat {
  readonly client: Client;
  readonly mutex: Mutex;
  readonly condition: Condition<Lock>;
}

/** A test with one server that never fails, and some clients with a mutex and a condition each. */
function withSeats(program: (fleet: Fleet, ...seats: Seat[]) => Promise<void>, seatCount = 4): () => Promise<void> {
  return withClients((fleet, ...clients) => {
    const seats = clients.map((client) => {
      const mutex = new Mutex(client, '/lock');
      return { client, mutex, condition: new Condition(client, '/changed', mutex) };
    });
    return program(fleet, ...seats);
  }, seatCount);
}

async function waitOnce({ mutex, condition }: Seat, options = {}): Promise<Lock> {
  return condition.wait(await mutex.acquire(), options);
}

test(
  'notify wakes the longest waiter, and notifyAll wakes all',
  withSeats(async (fleet, first, second, third, notifier) => {
    const woken: number[] = [];
    for (const [i, seat] of [first, second, third].entries()) {
      void waitOnce(seat).then(async (lock) => {
        woken.push(i);
        expect(lock.isHeld).toBe(true);
        await lock.release();
      });
      await fleet.world.sleep(100);
    }
    const lock = await notifier.mutex.acquire();
    expect(await notifier.condition.notify(lock)).toBe(true);
    await fleet.world.sleep(1000);
    // It is woken, but has not acquired the lock yet.
    expect(woken).toEqual([]);
    await lock.release();
    await fleet.world.sleep(1000);
    expect(woken).toEqual([0]);
    const again = await notifier.mutex.acquire();
    expect(await notifier.condition.notifyAll(again)).toBe(2);
    expect(await notifier.condition.notify(again)).toBe(false);
    await again.release();
    await fleet.world.sleep(1000);
    expect(woken.toSorted()).toEqual([0, 1, 2]);
    expect((await notifier.client.children('/changed')).children).toEqual([]);
  }),
);

test(
  'a cancelled waiter leaves nothing behind, and passes on a notification that came too late for it',
  withSeats(async (fleet, first, second, _, notifier) => {
    await expect(waitOnce(first, { timeoutMs: 500 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    await fleet.world.sleep(500);
    expect((await notifier.client.children('/changed')).children).toEqual([]);
    // Woken, it waits for the lock; then it cancels, and the other waiter must get the notification.
    const impatient = waitOnce(first, { timeoutMs: 2000 });
    await fleet.world.sleep(100);
    const patient = waitOnce(second);
    await fleet.world.sleep(100);
    const lock = await notifier.mutex.acquire();
    await notifier.condition.notify(lock);
    await expect(impatient).rejects.toMatchObject({ code: 'TIMEOUT' });
    await lock.release();
    await (await patient).release();
  }),
);

test(
  'a client that does not hold the lock can neither wait nor notify',
  withSeats(async (_, seat) => {
    const { mutex, condition } = seat;
    const lock = await mutex.acquire();
    await lock.release();
    await expect(condition.wait(lock)).rejects.toThrow('is no longer held: it was released');
    await expect(condition.notify(lock)).rejects.toThrow('no longer held');
    await expect(condition.notifyAll(lock)).rejects.toThrow('no longer held');
  }),
);

test(
  'a change made under the lock is seen by the notified client',
  withSeats(async (_, ...seats) => {
    const [producer, ...consumers] = seats;
    await producer!.client.create('/stock', '0');
    const read = async (client: Client): Promise<number> => Number((await client.get('/stock', { codec: text })).data);
    const consuming = consumers.map(async ({ client, mutex, condition }) => {
      for (let i = 0; i < 5; i++) {
        let lock = await mutex.acquire();
        while ((await read(client)) === 0) lock = await condition.wait(lock);
        await lock.guarded.set('/stock', `${(await read(client)) - 1}`);
        await lock.release();
      }
    });
    for (let i = 0; i < 15; i++) {
      const lock = await producer!.mutex.acquire();
      await lock.guarded.set('/stock', `${(await read(producer!.client)) + 1}`);
      await producer!.condition.notify(lock);
      await lock.release();
    }
    await Promise.all(consuming);
    expect(await read(producer!.client)).toBe(0);
  }),
);

test(
  'a failed wait does not hold the lock, not even one with no time at all',
  withSeats(async (fleet, first, second) => {
    const lock = await first.mutex.acquire();
    await expect(first.condition.wait(lock, { timeoutMs: 0 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    expect(lock.isHeld).toBe(false);
    const other = await second.mutex.acquire({ timeoutMs: 5000 });
    expect(await second.condition.notify(other)).toBe(false);
    await fleet.world.sleep(1000);
  }),
);

test(
  'a waiter whose lock is lost before its znode is created looks again instead of waiting',
  withSeats(async (fleet, waiter, other) => {
    const { client, condition, mutex } = waiter;
    const lock = await mutex.acquire();
    const create = client.createProtected.bind(client);
    client.createProtected = (async (...call: Parameters<typeof create>) => {
      client.createProtected = create;
      await other.client.delete(lock.path);
      await fleet.world.until(() => !lock.isHeld, 10_000);
      // Another client may have changed the awaited state and found no waiter to notify.
      const theirs = await other.mutex.acquire();
      expect(await other.condition.notify(theirs)).toBe(false);
      await theirs.release();
      return create(...call);
    }) as typeof create;
    const again = await condition.wait(lock, { timeoutMs: 10_000 });
    expect(again.isHeld).toBe(true);
    expect((await client.children('/changed')).children).toEqual([]);
  }),
);

test(
  'a notifier that loses the lock before it knows whether a waiter was woken does not report that none was',
  withSeats(async (fleet, waiter, notifier, other) => {
    const waiting = waitOnce(waiter);
    await fleet.world.sleep(100);
    const { client, condition, mutex } = notifier;
    const lock = await mutex.acquire();
    aroundNextCommit(client, async (commit) => {
      await commit();
      await other.client.delete(lock.path);
      await fleet.world.until(() => !lock.isHeld, 10_000);
      throw lostCommit();
    });
    await expect(condition.notify(lock)).rejects.toMatchObject({ code: 'SESSIONLOST', outcome: 'unknown' });
    await (await waiting).release();
  }),
);

test(
  'a waiter that learns late that its lock was deleted looks again instead of waiting',
  withSeats(async (fleet, waiter, other) => {
    const { client, condition, mutex } = waiter;
    await client.ensurePath('/changed');
    const lock = await mutex.acquire();
    await fleet.world.sleep(100);
    const create = client.createProtected.bind(client);
    client.createProtected = (async (...call: Parameters<typeof create>) => {
      client.createProtected = create;
      const { network } = fleet.world;
      network.block('zk1', 'client1');
      await other.client.delete(lock.path);
      const theirs = await other.mutex.acquire();
      expect(await other.condition.notify(theirs)).toBe(false);
      await theirs.release();
      expect(lock.isHeld).toBe(true);
      const creating = create(...call);
      while ((await other.client.children('/changed')).children.length === 0) await fleet.world.sleep(1);
      network.heal();
      return creating;
    }) as typeof create;
    const again = await condition.wait(lock, { timeoutMs: 10_000 });
    expect(again.isHeld).toBe(true);
    expect((await client.children('/changed')).children).toEqual([]);
  }),
);

test(
  'notifyAll that loses the lock in doubt reports what it did',
  withSeats(async (fleet, waiter, notifier, other) => {
    const waiting = waitOnce(waiter);
    await fleet.world.sleep(100);
    const { client, condition, mutex } = notifier;
    const lock = await mutex.acquire();
    aroundNextCommit(client, async () => {
      await other.client.delete(lock.path);
      await fleet.world.until(() => !lock.isHeld, 10_000);
      throw lostCommit();
    });
    await expect(condition.notifyAll(lock)).rejects.toMatchObject({
      code: 'SESSIONLOST',
      operation: 'Condition.notifyAll',
      outcome: 'unknown',
    });
    await other.client.delete(`/changed/${(await client.children('/changed')).children[0]}`);
    await (await waiting).release();
  }),
);
