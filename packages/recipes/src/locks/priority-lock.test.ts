import {
  type Client,
  ConnectionLossError,
  type ReadOptions,
  ThrottledError,
  TimeoutError,
  type Transaction,
  text,
} from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { inWorld, names } from '../testing/in-world.ts';
import type { Station } from '../testing/station.ts';
import { MultiLock } from './multi-lock.ts';
import { PriorityLock } from './priority-lock.ts';

/** Resolves when there are this many contenders. */
async function untilContenders(station: Station, count: number): Promise<void> {
  while ((await new PriorityLock(station.client, '/lock').contenders()).length !== count) await station.sleep(10);
}

describe('a priority lock', () => {
  test('goes to the smallest priority, and among equals to the oldest, with growing tokens', () =>
    inWorld(7, async ([first, ...others]) => {
      const held = await new PriorityLock(first!.client, '/lock').acquire({ priority: 9 });
      const order: string[] = [];
      const tokens = [held.token];
      const waiting: Promise<void>[] = [];
      const priorities = [5, 0, 12, -3, 5, 0];
      for (const [i, priority] of priorities.entries()) {
        const take = async (): Promise<void> => {
          await using lock = await new PriorityLock(others[i]!.client, '/lock').acquire({ priority });
          order.push(`${priority} ${others[i]!.host}`);
          tokens.push(lock.token);
          expect(lock.isHeld).toBe(true);
        };
        waiting.push(take());
        await untilContenders(first!, i + 2);
      }
      expect(held.isHeld).toBe(true);
      await held.release();
      await Promise.all(waiting);
      expect(order).toEqual(['-3 host5', '0 host3', '0 host7', '5 host2', '5 host6', '12 host4']);
      expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
      expect(new Set(tokens).size).toBe(7);
      expect(await names(first!)).toEqual([]);
    }));

  test('is not preempted by a smaller priority', () =>
    inWorld(3, async ([one, two, three], { sleep }) => {
      const held = await new PriorityLock(one.client, '/lock').acquire({ priority: 5 });
      let got = '';
      const second = new PriorityLock(two.client, '/lock').acquire({ priority: 1 }).then(async (lock) => {
        got += 'two ';
        await lock.release();
      });
      await untilContenders(one, 2);
      const third = new PriorityLock(three.client, '/lock').acquire({ priority: -1 }).then(async (lock) => {
        got += 'three ';
        await lock.release();
      });
      await sleep(1000);
      expect(got).toBe('');
      expect(held.isHeld).toBe(true);
      await held.guarded.create('/written', 'by one');
      await held.release();
      await Promise.all([second, third]);
      expect(got).toBe('three two ');
    }));

  test('is tried without waiting, and leaves nothing when it fails', () =>
    inWorld(2, async ([one, two]) => {
      const held = await new PriorityLock(one.client, '/lock').tryAcquire();
      expect(held?.isHeld).toBe(true);
      expect(await new PriorityLock(two.client, '/lock').tryAcquire({ priority: -9 })).toBeNull();
      expect(await names(one)).toEqual(['held']);
      await held?.release();
      expect(await new PriorityLock(two.client, '/lock').tryAcquire()).not.toBeNull();
    }));

  test('leaves nothing behind at its timeout or signal, also without a connection', () =>
    inWorld(2, async ([one, two], { sleep, cut, heal }) => {
      await new PriorityLock(one.client, '/lock').acquire();
      const lock = new PriorityLock(two.client, '/lock');
      await expect(lock.acquire({ timeoutMs: 500 })).rejects.toMatchObject({
        code: 'TIMEOUT',
        outcome: 'not-applied',
        operation: 'PriorityLock.acquire',
        path: '/lock',
      });
      const controller = new AbortController();
      const acquired = lock.acquire({ signal: controller.signal });
      await untilContenders(one, 2);
      controller.abort('enough');
      await expect(acquired).rejects.toMatchObject({ code: 'ABORTED', outcome: 'not-applied', cause: 'enough' });
      await untilContenders(one, 1);

      const last = expect(lock.acquire({ timeoutMs: 1000 })).rejects.toMatchObject({ code: 'TIMEOUT' });
      await sleep(500);
      cut('host2');
      await last;
      expect(await names(one)).toHaveLength(2);
      heal();
      await untilContenders(one, 1);
      expect(await names(one)).toEqual(['held']);
    }));

  test('finds what it has taken when the connection breaks at any moment', () =>
    inWorld(2, async ([one, two], { sleep, breakConnections }) => {
      for (let step = 0; step < 24; step++) {
        const acquired = new PriorityLock(one.client, '/lock').acquire();
        await sleep(step / 3);
        breakConnections();
        const lock = await acquired;
        expect(await names(two)).toEqual(['held']);
        expect(lock.isHeld).toBe(true);
        await lock.release();
        expect(await names(two)).toEqual([]);
      }
    }));

  test('leaves nothing behind when the caller cancels at any moment and the connection breaks', () =>
    inWorld(2, async ([one, two], { sleep, breakConnections }) => {
      for (let step = 0; step < 24; step++) {
        const controller = new AbortController();
        const acquired = new PriorityLock(one.client, '/lock').acquire({ signal: controller.signal });
        const ended = acquired.then(
          (lock) => lock.release(),
          () => {},
        );
        await sleep(step / 3);
        breakConnections();
        controller.abort();
        await ended;
        while ((await names(two).catch(() => [])).length > 0) await sleep(50);
      }
    }));

  test('lists its holder and waiters, with their priorities and data', () =>
    inWorld(3, async ([one, two, three]) => {
      const lock = new PriorityLock(one.client, '/lock', { data: 'one' });
      expect(await lock.contenders()).toEqual([]);
      const held = await lock.acquire({ priority: 3 });
      void new PriorityLock(two.client, '/lock', { data: 'two' }).acquire({ priority: 2 }).catch(() => {});
      await untilContenders(one, 2);
      void new PriorityLock(three.client, '/lock', { data: 'three' }).acquire({ priority: -2 }).catch(() => {});
      await untilContenders(one, 3);
      const contenders = await lock.contenders();
      expect(contenders.map(({ data, priority, isFirst }) => [text.decode(data), priority, isFirst])).toEqual([
        ['one', 3, true],
        ['three', -2, false],
        ['two', 2, false],
      ]);
      expect(contenders[0]).toMatchObject({
        token: held.token,
        path: '/lock/held',
        sessionId: one.client.session?.id,
      });
    }));

  test('can be revoked', () =>
    inWorld(2, async ([one, two]) => {
      const lock = new PriorityLock(two.client, '/lock');
      expect(await lock.revoke()).toBe(false);
      const held = await new PriorityLock(one.client, '/lock').acquire();
      const isAsked = new Promise((resolve) => held.revocation.addEventListener('abort', resolve));
      const next = lock.acquire({ priority: -1 });
      expect(await lock.revoke()).toBe(true);
      await isAsked;
      expect(held.isHeld).toBe(true);
      await held.release();
      expect((await next).isHeld).toBe(true);
    }));

  test('can be part of a multi-lock', () =>
    inWorld(2, async ([one, two]) => {
      const { client } = one;
      const both = new MultiLock(client, ['/mutex', new PriorityLock(client, '/lock')]);
      const held = await both.acquire();
      await held.guarded.create('/written', 'by both');
      expect(await new PriorityLock(two.client, '/lock').tryAcquire()).toBeNull();
      const theirs = await names(two);
      expect(theirs).toEqual(['held']);
      await two.client.delete('/lock/held');
      await new PriorityLock(two.client, '/lock').acquire();
      await expect(held.guarded.set('/written', 'late')).rejects.toBeInstanceOf(NotHeldError);
      await held.release();
      // Another client's znode stays.
      expect(await names(two)).toEqual(['held']);
    }));

  test('refuses a priority of more than 32 bits', () =>
    inWorld(1, async ([one]) => {
      const lock = new PriorityLock(one.client, '/lock');
      await expect(lock.acquire({ priority: 2 ** 31 })).rejects.toBeInstanceOf(RangeError);
      await expect(lock.tryAcquire({ priority: 0.5 })).rejects.toBeInstanceOf(RangeError);
      for (const priority of [-(2 ** 31), 2 ** 31 - 1]) await (await lock.acquire({ priority })).release();
    }));
});

describe('the holder of a priority lock', () => {
  test('is refused by the service when another client has acquired it since, at the same path', () =>
    inWorld(2, async ([one, two]) => {
      const lock = await new PriorityLock(one.client, '/lock').acquire();
      await one.client.create('/written', '1');
      // The write is in flight when the lock is lost and acquired by another client.
      const [, failure] = await Promise.all([
        two.client
          .transaction()
          .delete('/lock/held')
          .set('/lock', 'held by a client')
          .create('/lock/held', '', { mode: 'ephemeral' })
          .commit(),
        two.sleep(0.5).then(() => lock.guarded.set('/written', '2').catch((error: unknown) => error)),
      ]);
      expect(failure).toBeInstanceOf(NotHeldError);
      expect((await one.client.get('/written', { codec: text })).data).toBe('1');
      while (lock.isHeld) await one.sleep(10);
      await lock.release();
      expect(await names(two)).toEqual(['held']);
    }));

  test('deletes nothing of another holder when it releases a lost lock', () =>
    inWorld(2, async ([one, two]) => {
      const lock = await new PriorityLock(one.client, '/lock').acquire();
      const [[, , theirs]] = await Promise.all([
        two.client
          .transaction()
          .delete('/lock/held')
          .set('/lock', 'held by a client')
          .create('/lock/held', '', { mode: 'ephemeral' })
          .commit(),
        two.sleep(0.5).then(() => lock.release()),
      ]);
      const stat = await two.client.exists('/lock/held', { read: 'linearizable' });
      expect(stat?.czxid).toBe(theirs.stat?.czxid);
    }));

  test('releases it when the same session comes back after it was lost', () =>
    inWorld(2, async ([one, two], { sleep, server }) => {
      const lock = await new PriorityLock(one.client, '/lock').acquire();
      const sessionId = one.client.session?.id;
      // A service that is down for longer than the session timeout keeps its sessions.
      server.crash();
      await sleep(6000);
      expect(lock.isHeld).toBe(false);
      server.start();
      await Promise.all([one.client.whenConnected(), two.client.whenConnected()]);
      expect(one.client.session?.id).toBe(sessionId);
      await sleep(500);
      expect(await names(two)).toEqual([]);
    }));

  test('is followed at once after a release, and after a delay when it died', () =>
    inWorld(2, async ([one, two]) => {
      const options = { lockDelayMs: 30_000 };
      const first = await new PriorityLock(one.client, '/lock', options).acquire();
      const lock = new PriorityLock(two.client, '/lock', options);
      const { clock } = two.client.surroundings;
      const next = lock.acquire();
      await untilContenders(two, 2);
      let startMs = clock.monotonicMs();
      await first.release();
      await (await next).release();
      expect(clock.monotonicMs() - startMs).toBeLessThan(1000);

      await new PriorityLock(one.client, '/lock', options).acquire();
      await one.client.close();
      startMs = clock.monotonicMs();
      expect(await lock.tryAcquire()).toBeNull();
      await expect(lock.acquire({ timeoutMs: 5000 })).rejects.toMatchObject({ code: 'TIMEOUT' });
      const third = await lock.acquire();
      expect(clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(30_000);
      await third.release();
      expect(await names(two)).toEqual([]);
    }));

  test('goes to a smaller priority that comes during the delay', () =>
    inWorld(3, async ([one, two, three], { sleep }) => {
      const options = { lockDelayMs: 30_000 };
      await new PriorityLock(one.client, '/lock', options).acquire();
      const order: number[] = [];
      const take = async ({ client }: Station, priority: number): Promise<void> => {
        await using _ = await new PriorityLock(client, '/lock', options).acquire({ priority });
        order.push(priority);
      };
      const first = take(two, 0);
      await untilContenders(two, 2);
      await one.client.close();
      await sleep(10_000);
      await Promise.all([first, take(three, -5)]);
      expect(order).toEqual([-5, 0]);
    }));

  test('is followed at once after a release whose reply was lost', () =>
    inWorld(2, async ([one, two], { sleep, breakConnections }) => {
      const lock = new PriorityLock(one.client, '/lock', { lockDelayMs: 30_000 });
      for (let step = 0; step < 16; step++) {
        const held = await lock.acquire();
        const released = held.release();
        await sleep(step / 4);
        breakConnections();
        await released;
        const { data } = await two.client.get('/lock', { codec: text, read: 'linearizable' });
        expect(data, `after ${step} steps`).toBe('free');
        expect(await names(two)).toEqual([]);
      }
    }));
});

describe('a waiter by priority', () => {
  test('looks again when another client held the lock between its list and its acquisition', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      await two.client.ensurePath('/lock');
      const taken: boolean[] = [];
      for (let step = 0; step < 32; step++) {
        const controller = new AbortController();
        const acquired = new PriorityLock(one.client, '/lock').acquire({ signal: controller.signal });
        const ended = acquired.catch(() => null);
        await sleep(step / 4);
        // Another client releases the lock, while a better one waits.
        const [better, givenBack] = await two.client
          .transaction()
          .create('/lock/_c_-priority--1-', '', { mode: 'ephemeral', sequential: true })
          .set('/lock', 'free')
          .commit();
        await sleep(100);
        controller.abort();
        const lock = await ended;
        taken.push(lock !== null);
        if (lock !== null) expect(lock.token).toBeLessThan(givenBack.mzxid);
        await lock?.release();
        await two.client.delete(better.path);
        while ((await names(two)).length > 0) await sleep(10);
      }
      // First too late for us, in the end too late for them.
      expect(taken[0]).toBe(false);
      expect(taken.at(-1)).toBe(true);
    }));

  test('creates another place when its znode is deleted by another client', () =>
    inWorld(2, async ([one, two]) => {
      const held = await new PriorityLock(one.client, '/lock').acquire();
      const acquired = new PriorityLock(two.client, '/lock').acquire();
      await untilContenders(one, 2);
      const [, place] = await new PriorityLock(one.client, '/lock').contenders();
      await one.client.delete(place!.path);
      await untilContenders(one, 2);
      const [, another] = await new PriorityLock(one.client, '/lock').contenders();
      expect(another!.path).not.toBe(place!.path);
      await held.release();
      expect((await acquired).isHeld).toBe(true);
    }));

  test('that dies does not block those behind it', () =>
    inWorld(3, async ([one, two, three]) => {
      const held = await new PriorityLock(one.client, '/lock').acquire();
      const second = expect(new PriorityLock(two.client, '/lock').acquire({ priority: -1 })).rejects.toMatchObject({
        code: 'CLOSED',
      });
      await untilContenders(one, 2);
      const third = new PriorityLock(three.client, '/lock').acquire();
      await untilContenders(one, 3);
      await two.client.close();
      await second;
      await held.release();
      expect((await third).isHeld).toBe(true);
    }));
});

test('an acquisition whose reply is lost, and that cannot be looked up before the time is up, is given back', () =>
  inWorld(2, async ([one, two], { sleep }) => {
    const { client, relent } = loseReply(one.client);
    const failed = new PriorityLock(client, '/lock').acquire({ timeoutMs: 1000 });
    await expect(failed).rejects.toMatchObject({ code: 'TIMEOUT' });
    expect(await names(two)).toContain('held');
    relent();
    await sleep(5000);
    expect(await names(two)).toEqual([]);
  }));

/** A client that loses the reply to its first transaction, and whose linearizable reads time out until `relent`. */
function loseReply(station: Client): { readonly client: Client; relent(): void } {
  let isFirst = true;
  let isBusy = true;
  const client = new Proxy(station, {
    get: (target, key) => {
      const member: unknown = Reflect.get(target, key, target);
      if (typeof member !== 'function') return member;
      if (key === 'transaction') return makeTransaction;
      return (...args: unknown[]): unknown => {
        const [path, options] = args as [string, ReadOptions | undefined];
        if (key === 'get' && isBusy && options?.read === 'linearizable') {
          const about = { operation: key, path } as const;
          return Promise.reject(
            options.timeoutMs === undefined
              ? new ThrottledError(about)
              : new TimeoutError({ ...about, outcome: 'not-applied' }),
          );
        }
        return Reflect.apply(member, target, args);
      };
    },
  });
  const makeTransaction = (): Transaction => {
    const transaction = station.transaction();
    const commit = transaction.commit.bind(transaction);
    transaction.commit = async (options) => {
      const results = await commit(options);
      if (!isFirst) return results;
      isFirst = false;
      throw new ConnectionLossError({ operation: 'transaction', path: '/lock', outcome: 'unknown' });
    };
    return transaction;
  };
  return {
    client,
    relent: () => {
      isBusy = false;
    },
  };
}
