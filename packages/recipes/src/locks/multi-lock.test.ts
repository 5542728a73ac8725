import { BadArgumentsError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { inWorld, names } from '../testing/in-world.ts';
import { leftAt } from '../testing/left-at.ts';
import { stepClient } from '../testing/stepped-client.ts';
import { MultiLock } from './multi-lock.ts';
import { Mutex } from './mutex.ts';

describe('a multi-lock', () => {
  test('holds all of its locks or none', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      const both = new MultiLock(one.client, ['/locks/b', '/locks/a']);
      const other = await new Mutex(two.client, '/locks/b').acquire();
      expect(await both.tryAcquire()).toBeNull();
      await expect(both.acquire({ timeoutMs: 300 })).rejects.toMatchObject({ code: 'TIMEOUT' });
      await sleep(100);
      expect(await names(one, '/locks/a')).toEqual([]);
      await other.release();
      const lock = await both.acquire();
      expect(lock.isHeld).toBe(true);
      expect(lock.token).toBeGreaterThan(other.token);
      await lock.release();
      expect(await names(one, '/locks/a')).toEqual([]);
      expect(await names(one, '/locks/b')).toEqual([]);
    }));

  test('does not deadlock with one that was given the same locks in another order', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      const run = async (lock: MultiLock): Promise<void> => {
        for (let i = 0; i < 5; i++) {
          await using held = await lock.acquire();
          await sleep(5);
          expect(held.isHeld).toBe(true);
        }
      };
      await Promise.all([
        run(new MultiLock(one.client, ['/locks/a', '/locks/b'])),
        run(new MultiLock(two.client, ['/locks/b', '/locks/a'])),
      ]);
    }));

  test('that loses one of its locks while it waits for another releases what it has, and starts again', () =>
    inWorld(3, async ([one, two, three], { sleep }) => {
      const other = await new Mutex(two.client, '/locks/b').acquire();
      const acquired = new MultiLock(one.client, ['/locks/a', '/locks/b', '/locks/c']).acquire();
      while ((await names(two, '/locks/b')).length < 2) await sleep(10);
      const [first] = await names(two, '/locks/a');
      const next = new Mutex(three.client, '/locks/a').acquire();
      await two.client.delete(`/locks/a/${first}`);
      // Others can acquire it, and nothing blocks them at the second.
      await (await next).release();
      while ((await names(two, '/locks/a')).length !== 1) await sleep(10);
      await other.release();
      const lock = await acquired;
      expect(lock.isHeld).toBe(true);
      expect(lock.signal.aborted).toBe(false);
      await lock.guarded.create('/x', 'with all of them');
      await lock.release();
      for (const path of ['/locks/a', '/locks/b', '/locks/c']) expect(await names(two, path)).toEqual([]);
    }));

  test('is acquired after session loss between two of its locks', () =>
    inWorld(2, async ([one, two], { sleep, cut, heal }) => {
      const other = await new Mutex(two.client, '/locks/b').acquire();
      const acquired = new MultiLock(one.client, ['/locks/a', '/locks/b']).acquire();
      while ((await names(two, '/locks/b')).length < 2) await sleep(10);
      cut('host1');
      await sleep(10_000);
      heal();
      await sleep(5000);
      await other.release();
      expect((await acquired).isHeld).toBe(true);
    }));

  test('is cancelled by its signal, but not by the loss of a lock', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      await new Mutex(two.client, '/locks/b').acquire();
      const controller = new AbortController();
      const both = new MultiLock(one.client, ['/locks/a', '/locks/b']);
      const acquired = both.acquire({ signal: controller.signal });
      acquired.catch(() => {});
      while ((await names(two, '/locks/b')).length < 2) await sleep(10);
      controller.abort('enough');
      await expect(acquired).rejects.toMatchObject({ code: 'ABORTED', outcome: 'not-applied', cause: 'enough' });
      await sleep(100);
      expect(await names(two, '/locks/a')).toEqual([]);
      expect(await names(two, '/locks/b')).toHaveLength(1);
    }));

  test('acquires a lock once that is named twice', () =>
    inWorld(1, async ([one]) => {
      const lock = await new MultiLock(one.client, ['/locks/a', '/locks/a']).acquire({ timeoutMs: 10_000 });
      expect(lock.isHeld).toBe(true);
      expect(await names(one, '/locks/a')).toHaveLength(1);
    }));

  test('refuses two locks of one path, which would wait for each other', () =>
    inWorld(1, ([one]) => {
      const { client } = one;
      expect(() => new MultiLock(client, ['/locks/a', new Mutex(client, '/locks/a')])).toThrow(BadArgumentsError);
      const mutex = new Mutex(client, '/locks/a');
      expect(() => new MultiLock(client, [mutex, '/locks/b', mutex])).not.toThrow();
      return Promise.resolve();
    }));

  test('tryAcquire fails when one of its locks is lost while the next one is tried', () =>
    inWorld(2, async ([one, two]) => {
      const { client, beforeRequest } = stepClient(one.client);
      await two.client.ensurePath('/locks/b');
      await client.ensurePath('/locks/a');
      // After the creation and the list of the first, and its watch.
      beforeRequest(4, () => two.client.deleteRecursive('/locks/a'));
      expect(await new MultiLock(client, ['/locks/a', '/locks/b']).tryAcquire()).toBeNull();
      await one.sleep(50);
      expect(await names(two, '/locks/b')).toEqual([]);
    }));

  test('leaves no listeners on a signal that is used repeatedly', () =>
    inWorld(1, async ([one]) => {
      const { signal } = new AbortController();
      const both = new MultiLock(one.client, ['/locks/a', '/locks/b']);
      for (let i = 0; i < 3; i++) await (await both.acquire({ signal })).release();
      expect(leftAt(signal)).toBe(0);
    }));

  test('ends with the first of its locks that ends, and writes only while it has all', () =>
    inWorld(2, async ([one, two]) => {
      const lock = await new MultiLock(one.client, ['/locks/a', '/locks/b']).acquire();
      await lock.guarded.create('/x', '1');
      const [name] = await names(two, '/locks/b');
      const ended = new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
      const late = two.client
        .delete(`/locks/b/${name}`)
        .then(() => lock.guarded.set('/x', '2'))
        .catch((error: unknown) => error);
      expect(await late).toBeInstanceOf(NotHeldError);
      await ended;
      expect(lock.isHeld).toBe(false);
    }));

  test('may have a smaller token than an earlier one with other locks, and can write nevertheless', () =>
    inWorld(3, async ([one, two, three], { sleep }) => {
      const before = await new Mutex(three.client, '/locks/b').acquire();
      const first = new MultiLock(one.client, ['/locks/b', '/locks/c']).acquire();
      await sleep(50);
      const second = new MultiLock(two.client, ['/locks/a', '/locks/b']).acquire();
      await sleep(50);
      await before.release();
      const { token } = await first;
      await (await first).release();
      const later = await second;
      expect(later.token).toBeLessThan(token);
      await later.guarded.create('/x');
      await expect((await first).guarded.set('/x', 'too late')).rejects.toThrow(NotHeldError);
    }));
});
