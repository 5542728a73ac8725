import { text } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { inWorld, names } from '../testing/in-world.ts';
import type { Station } from '../testing/station.ts';
import { Mutex, type MutexOptions } from './mutex.ts';
import { PriorityLock } from './priority-lock.ts';

describe('a mutex with a delay', () => {
  test('is withheld from others for a while when its holder died, but not after a release', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      const options: MutexOptions = { lockDelayMs: 30_000 };
      const first = await new Mutex(one.client, '/lock', options).acquire();
      const mutex = new Mutex(two.client, '/lock', options);
      const clock = two.client.surroundings.clock;
      const next = mutex.acquire();
      await sleep(100);
      let startMs = clock.monotonicMs();
      await first.release();
      const second = await next;
      expect(clock.monotonicMs() - startMs).toBeLessThan(1000);
      await second.release();

      await new Mutex(one.client, '/lock', options).acquire();
      await one.client.close();
      startMs = clock.monotonicMs();
      expect(await mutex.tryAcquire()).toBeNull();
      await expect(mutex.acquire({ timeoutMs: 5000 })).rejects.toMatchObject({ code: 'TIMEOUT' });
      const third = await mutex.acquire();
      expect(clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(30_000);
      await third.release();
      expect(await names(two)).toEqual([]);
    }));

  test('keeps a contender that had been waiting for long from it no longer than others', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      const options: MutexOptions = { lockDelayMs: 30_000 };
      await new Mutex(one.client, '/lock', options).acquire();
      const next = new Mutex(two.client, '/lock', options).acquire();
      await sleep(600_000);
      const { clock } = two.client.surroundings;
      const startMs = clock.monotonicMs();
      await one.client.close();
      expect((await next).isHeld).toBe(true);
      expect(clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(30_000);
      expect(clock.monotonicMs() - startMs).toBeLessThan(31_000);
    }));

  test('is acquired and released across lost connections, without a delay for the next holder', () =>
    inWorld(2, async ([one, two], { sleep, breakConnections }) => {
      await two.client.ensurePath('/lock');
      const mutex = new Mutex(one.client, '/lock', { lockDelayMs: 30_000 });
      const { clock } = one.client.surroundings;
      for (let step = 0; step < 32; step++) {
        const startMs = clock.monotonicMs();
        const acquired = mutex.acquire();
        acquired.catch(() => {});
        await sleep(step / 4);
        breakConnections();
        const lock = await acquired;
        expect(lock.isHeld).toBe(true);
        expect(await sayings(two)).toMatch(/^held 0x/);
        const released = lock.release();
        await sleep(step / 4);
        breakConnections();
        await released;
        expect(await sayings(two), `after ${step} steps`).toBe('free');
        expect(clock.monotonicMs() - startMs).toBeLessThan(10_000);
      }
    }));

  test.each([
    ['a mutex', Mutex],
    ['a lock with priorities', PriorityLock],
  ])('lets a waiter of %s whose session is lost during it stand in line again at once', (_what, Kind) =>
    inWorld(3, async ([one, two, three], { sleep, cut, heal }) => {
      await new Kind(one.client, '/lock', { lockDelayMs: 30_000 }).acquire();
      await one.client.close();
      const lock = new Kind(two.client, '/lock', { lockDelayMs: 30_000 });
      const acquired = lock.acquire();
      await sleep(1000);
      const before = await names(three);
      expect(before).toHaveLength(1);
      cut('host2');
      await sleep(10_000);
      heal();
      await sleep(10_000);
      const after = await names(three);
      expect(after).toHaveLength(1);
      expect(after).not.toEqual(before);
      expect((await acquired).isHeld).toBe(true);
    }),
  );

  test('is free at once after a waiter has cancelled', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      await two.client.createParents('/lock', 'free');
      const mutex = new Mutex(one.client, '/lock', { lockDelayMs: 30_000 });
      const codes: string[] = [];
      for (let step = 1; step < 32; step++) {
        const controller = new AbortController();
        const acquired = mutex.acquire({ signal: controller.signal });
        const ended = acquired.then(
          (lock) => lock.release(),
          (error: unknown) => {
            const expected = { code: 'ABORTED', outcome: 'not-applied', operation: 'Mutex.acquire', path: '/lock' };
            expect(error).toMatchObject(expected);
            codes.push('ABORTED');
          },
        );
        await sleep(step / 4);
        controller.abort();
        await ended;
        while ((await names(two)).length > 0) await sleep(10);
        expect(await sayings(two), `after ${step} steps`).toBe('free');
      }
      expect(codes.length).toBeGreaterThan(5);
    }));

  test('leaves nothing behind when it is tried during the delay', () =>
    inWorld(2, async ([one, two]) => {
      const options: MutexOptions = { lockDelayMs: 30_000 };
      await new Mutex(one.client, '/lock', options).acquire();
      await one.client.close();
      expect(await new Mutex(two.client, '/lock', options).tryAcquire()).toBeNull();
      expect(await names(two)).toEqual([]);
      expect(await sayings(two)).toMatch(/^died 0x/);
    }));

  test.each([
    ['a mutex', Mutex],
    ['a lock with priorities', PriorityLock],
  ])('keeps %s from others no longer than that, also after tries and cancelled waits', (_what, Kind) =>
    inWorld(3, async ([one, two, three], { sleep }) => {
      const options = { lockDelayMs: 30_000 };
      await new Kind(one.client, '/lock', options).acquire();
      await one.client.close();
      const lock = new Kind(two.client, '/lock', options);
      expect(await lock.tryAcquire()).toBeNull();
      await sleep(14_000);
      await expect(lock.acquire({ timeoutMs: 10_000 })).rejects.toMatchObject({ code: 'TIMEOUT' });
      expect(await lock.tryAcquire()).toBeNull();
      await sleep(7000);
      // Another process, which has seen nothing of this.
      const taken = await new Kind(three.client, '/lock', options).tryAcquire();
      expect(taken?.isHeld).toBe(true);
    }),
  );
});

/** What the parent's data says about the lock. */
async function sayings({ client }: Station): Promise<string> {
  const { data } = await client.get('/lock', { codec: text, read: 'linearizable' });
  return data;
}
