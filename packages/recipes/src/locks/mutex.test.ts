import { acl, NoAuthError, text } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { inWorld, names } from '../testing/in-world.ts';
import { Mutex, type MutexOptions } from './mutex.ts';

describe.each(['curator', 'kazoo'] as const)('a mutex with the layout of %s', (layout) => {
  const options: MutexOptions = { layout };

  test('is passed on in the order of the requests, with growing tokens', () =>
    inWorld(3, async (stations, { sleep }) => {
      const order: string[] = [];
      const tokens: bigint[] = [];
      await Promise.all(
        stations.map(async ({ client, host }, i) => {
          await sleep(10 * i);
          await using lock = await new Mutex(client, '/lock', options).acquire();
          order.push(host);
          tokens.push(lock.token);
          expect(lock.isHeld).toBe(true);
          await sleep(100);
        }),
      );
      expect(order).toEqual(['host1', 'host2', 'host3']);
      expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
      expect(new Set(tokens).size).toBe(3);
      expect(await names(stations[0]!)).toEqual([]);
    }));

  test('is tried without waiting, and leaves nothing when it fails', () =>
    inWorld(2, async ([one, two]) => {
      const held = await new Mutex(one.client, '/lock', options).tryAcquire();
      expect(held?.isHeld).toBe(true);
      expect(await new Mutex(two.client, '/lock', options).tryAcquire()).toBeNull();
      expect(await names(one)).toHaveLength(1);
      await held?.release();
      expect(held?.isHeld).toBe(false);
      expect(await new Mutex(two.client, '/lock', options).tryAcquire()).not.toBeNull();
    }));

  test('leaves nothing behind at its timeout or signal', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      await new Mutex(one.client, '/lock', options).acquire();
      const mutex = new Mutex(two.client, '/lock', options);
      await expect(mutex.acquire({ timeoutMs: 500 })).rejects.toMatchObject({
        code: 'TIMEOUT',
        outcome: 'not-applied',
        operation: 'Mutex.acquire',
        path: '/lock',
      });
      const controller = new AbortController();
      const acquired = mutex.acquire({ signal: controller.signal });
      await sleep(100);
      expect(await names(one)).toHaveLength(2);
      controller.abort('enough');
      await expect(acquired).rejects.toMatchObject({ code: 'ABORTED', outcome: 'not-applied', cause: 'enough' });
      await sleep(100);
      expect(await names(one)).toHaveLength(1);
    }));

  test('leaves nothing behind when the waiter cancels without a connection', () =>
    inWorld(2, async ([one, two], { sleep, cut, heal }) => {
      await new Mutex(one.client, '/lock', options).acquire();
      const acquired = new Mutex(two.client, '/lock', options).acquire({ timeoutMs: 1000 });
      const failed = expect(acquired).rejects.toMatchObject({ code: 'TIMEOUT' });
      await sleep(500);
      cut('host2');
      await failed;
      expect(await names(one)).toHaveLength(2);
      heal();
      await sleep(2000);
      expect(await names(one)).toHaveLength(1);
    }));

  test('finds its znode when the connection breaks at any moment of the creation', () =>
    inWorld(2, async ([one, two], { sleep, breakConnections }) => {
      for (let afterMs = 0; afterMs < 12; afterMs++) {
        const acquired = new Mutex(one.client, '/lock', options).acquire();
        await sleep(afterMs / 2);
        breakConnections();
        const lock = await acquired;
        expect(await names(two)).toHaveLength(1);
        await lock.release();
      }
    }));

  test('can be acquired after session loss at any moment of creating the parent', () =>
    inWorld(1, async ([one], { sleep, cut, heal }) => {
      const { client } = one;
      for (let step = 0; step < 12; step++) {
        const acquired = new Mutex(client, `/shop/locks/${step}`, options).acquire();
        acquired.catch(() => {});
        await sleep(step / 2);
        cut('host1');
        await sleep(10_000);
        heal();
        const lock = await acquired;
        await lock.release();
        await client.whenConnected();
      }
    }));

  test('lists its holder and waiters, since when, and with their data', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      const mutex = new Mutex(one.client, '/lock', { layout, data: 'one' });
      expect(await mutex.contenders()).toEqual([]);
      const lock = await mutex.acquire();
      void new Mutex(two.client, '/lock', { layout, data: 'two' }).acquire().catch(() => {});
      await sleep(100);
      const contenders = await mutex.contenders();
      expect(contenders.map(({ data }) => text.decode(data))).toEqual(['one', 'two']);
      expect(contenders.map(({ isFirst }) => isFirst)).toEqual([true, false]);
      expect(contenders.map(({ sessionId }) => sessionId)).toEqual([one.client.session?.id, two.client.session?.id]);
      expect(contenders[0]).toMatchObject({ token: lock.token, path: lock.path });
      expect(contenders[1]!.since.getTime()).toBeGreaterThanOrEqual(contenders[0]!.since.getTime());
    }));

  test('can be revoked', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      const mutex = new Mutex(two.client, '/lock', options);
      expect(await mutex.revoke()).toBe(false);
      const lock = await new Mutex(one.client, '/lock', options).acquire();
      const isAsked = new Promise((resolve) => lock.revocation.addEventListener('abort', resolve));
      const next = mutex.acquire();
      expect(await mutex.revoke()).toBe(true);
      await isAsked;
      expect(lock.isHeld).toBe(true);
      await lock.release();
      expect((await next).isHeld).toBe(true);
      await sleep(10);
    }));
});

describe('a lock that is held', () => {
  test('is released with its last handle', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      const lock = await new Mutex(one.client, '/lock').acquire();
      const inner = lock.reenter();
      expect(inner.token).toBe(lock.token);
      await lock.release();
      expect(lock.isHeld).toBe(false);
      expect(lock.signal.aborted).toBe(true);
      expect(inner.isHeld).toBe(true);
      expect(await new Mutex(two.client, '/lock').tryAcquire()).toBeNull();
      await inner.release();
      await inner.release();
      expect(() => inner.reenter()).toThrow(NotHeldError);
      expect(await new Mutex(two.client, '/lock').tryAcquire()).not.toBeNull();
      await sleep(10);
    }));

  test("may have more handles than Node.js' listener limit, all of which end with it", () =>
    inWorld(1, async ([one], { sleep }) => {
      const warnings: Error[] = [];
      const onWarning = (warning: Error): number => warnings.push(warning);
      process.on('warning', onWarning);
      const lock = await new Mutex(one.client, '/lock').acquire();
      const handles = Array.from({ length: 20 }, () => lock.reenter());
      await new Promise((resolve) => void setImmediate(resolve));
      process.off('warning', onWarning);
      expect(warnings).toEqual([]);
      await handles[0]!.release();
      await one.client.delete(lock.path);
      while (!lock.signal.aborted) await sleep(1);
      expect(handles.every(({ signal, isHeld }) => signal.aborted && !isHeld)).toBe(true);
      expect(String(handles[0]!.signal.reason)).toContain('it was released');
    }));

  test('rejects a refused release, without effect on callers that do not await it, and can be retried', () =>
    inWorld(1, async ([one]) => {
      const noDelete = [acl.world('crwa')];
      const lock = await new Mutex(one.client, '/lock', { acl: noDelete }).acquire();
      void lock.release();
      await expect(lock.release()).rejects.toBeInstanceOf(NoAuthError);
      expect(lock.isHeld).toBe(false);
      expect(await names(one)).toHaveLength(1);
      await one.client.setAcl('/lock', [acl.world('cdrwa')]);
      await lock.release();
      expect(await names(one)).toEqual([]);
    }));

  test('is deleted when its release resolves, also when a margin had ended it before', () =>
    inWorld(2, async ([one, two], { sleep, cut, heal }) => {
      const lock = await new Mutex(one.client, '/lock', { marginMs: 2000 }).acquire();
      cut('host1');
      while (!lock.signal.aborted) await sleep(10);
      let isReleased = false;
      const released = lock.release().then(() => {
        isReleased = true;
      });
      await sleep(500);
      expect(isReleased).toBe(false);
      heal();
      await released;
      expect(await names(two)).toEqual([]);
      expect(one.client.state).toBe('connected');
    }));

  test('ends when another client deletes its znode', () =>
    inWorld(2, async ([one, two]) => {
      const lock = await new Mutex(one.client, '/lock').acquire();
      const ended = new Promise((resolve) => lock.signal.addEventListener('abort', resolve));
      await two.client.delete(lock.path);
      await ended;
      expect(lock.isHeld).toBe(false);
      expect(lock.signal.reason).toBeInstanceOf(NotHeldError);
      await lock.release();
    }));

  test('ends earlier by a margin, but not while the service replies', () =>
    inWorld(2, async ([one, two], { sleep, cut, heal }) => {
      // What is left of 4000 ms is shorter than two ping intervals, but long enough.
      const lock = await new Mutex(one.client, '/lock', { marginMs: 2000 }).acquire();
      await sleep(20_000);
      expect(lock.isHeld).toBe(true);
      cut('host1');
      await sleep(2100);
      expect(lock.isHeld).toBe(false);
      expect(lock.signal.aborted).toBe(true);
      heal();
      await sleep(5000);
      expect(one.client.state).toBe('connected');
      expect(lock.isHeld).toBe(false);
      expect(await names(two)).toEqual([]);
    }));

  test('is over for a process that was paused, before its first timer fires', () =>
    inWorld(2, async ([one, two], { sleep }) => {
      const lock = await new Mutex(one.client, '/lock').acquire();
      await one.client.create('/fenced', '0');
      one.pause();
      const next = await new Mutex(two.client, '/lock').acquire();
      await next.guarded.set('/fenced', 'next');
      // The first host runs nothing but these lines.
      expect(lock.signal.aborted).toBe(false);
      expect(lock.isHeld).toBe(false);
      await expect(lock.guarded.set('/fenced', 'late')).rejects.toBeInstanceOf(NotHeldError);
      one.resume();
      await sleep(5000);
      expect(lock.signal.aborted).toBe(true);
      const { data } = await two.client.get('/fenced', { codec: text });
      expect(data).toBe('next');
    }));

  test('removes its znode when the same session comes back after it was lost', () =>
    inWorld(2, async ([one, two], { sleep, server }) => {
      const lock = await new Mutex(one.client, '/lock').acquire();
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
      expect(lock.isHeld).toBe(false);
    }));

  test('is acquired by a waiter whose session was lost, from the end of the line', () =>
    inWorld(3, async ([one, two, three], { sleep, cut, heal }) => {
      const lock = await new Mutex(one.client, '/lock').acquire();
      const order: string[] = [];
      const second = new Mutex(two.client, '/lock').acquire().then((got) => {
        order.push('two');
        return got;
      });
      await sleep(100);
      const third = new Mutex(three.client, '/lock').acquire().then(async (got) => {
        order.push('three');
        await got.release();
      });
      cut('host2');
      await sleep(10_000);
      heal();
      await sleep(5000);
      expect(await names(one)).toHaveLength(3);
      await lock.release();
      await third;
      expect((await second).isHeld).toBe(true);
      expect(order).toEqual(['three', 'two']);
    }));
});

describe('a write guarded by a lock', () => {
  test('is applied while the lock is held, with its own results and errors', () =>
    inWorld(1, async ([one], { sleep }) => {
      const { client } = one;
      const lock = await new Mutex(client, '/lock').acquire();
      const { guarded } = lock;
      const created = await guarded.create('/a', '1');
      expect(created.path).toBe('/a');
      expect((await guarded.set('/a', '2', { version: 0 })).version).toBe(1);
      await expect(guarded.set('/a', '3', { version: 0 })).rejects.toMatchObject({ code: 'BADVERSION', path: '/a' });
      await expect(guarded.create('/a')).rejects.toMatchObject({ code: 'NODEEXISTS' });
      const [stat, made] = await guarded.commit((transaction) => transaction.set('/a', '4').create('/b', 'b'));
      expect([stat.version, made.path]).toEqual([2, '/b']);
      await expect(
        guarded.commit((transaction) => transaction.set('/a', '5').delete('/missing')),
      ).rejects.toMatchObject({ code: 'TRANSACTIONFAILED', index: 1, path: '/missing' });
      await guarded.delete('/b');
      await expect(guarded.delete('/b')).rejects.toMatchObject({ code: 'NONODE' });
      const other = lock.reenter();
      await other.release();
      await expect(other.guarded.set('/a', '6')).rejects.toThrow('no longer held: it was released');
      await client.delete(lock.path);
      while (!lock.signal.aborted) await sleep(1);
      await expect(guarded.set('/a', '6')).rejects.toBeInstanceOf(NotHeldError);
      await expect(guarded.set('/a', '6')).rejects.toThrow('no longer held: its znode was deleted');
      expect((await client.get('/a', { codec: text })).data).toBe('4');
    }));

  test('is refused in another transaction than the one that checks the lock', () =>
    inWorld(1, async ([one]) => {
      const { client } = one;
      await client.create('/a', '1');
      const { guarded } = await new Mutex(client, '/lock').acquire();
      const written = guarded.commit(() => client.transaction().set('/a', '2'));
      await expect(written).rejects.toMatchObject({ code: 'BADARGUMENTS' });
      expect((await client.get('/a', { codec: text })).data).toBe('1');
    }));

  test('is refused by the server when the znode of the lock is gone, whatever its holder believes', () =>
    inWorld(2, async ([one, two]) => {
      const lock = await new Mutex(one.client, '/lock').acquire();
      await one.client.create('/a', '1');
      // The write is in flight when the lock is lost.
      const [, failure] = await Promise.all([
        two.client.delete(lock.path),
        two.sleep(0.5).then(() => lock.guarded.set('/a', '2').catch((error: unknown) => error)),
      ]);
      expect(failure).toBeInstanceOf(NotHeldError);
      expect((await one.client.get('/a', { codec: text })).data).toBe('1');
    }));
});
