import { BadArgumentsError, ThrottledError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { NotHeldError } from '../kernel/not-held-error.ts';
import { SequenceExhaustedError } from '../kernel/overflow.ts';
import { sharedLockSettings } from '../kernel/settings.ts';
import { inWorld, names } from '../testing/in-world.ts';
import { stepClient } from '../testing/stepped-client.ts';
import { takePlace } from './lock.ts';
import { ReadWriteLock } from './read-write-lock.ts';

describe.each(['curator', 'kazoo'] as const)('a read/write lock with the layout of %s', (layout) => {
  test('has many readers, and a writer that waits for them and lets no other client in', () =>
    inWorld(4, async ([one, two, three, four], { sleep }) => {
      const [a, b, c, d] = [one, two, three, four].map(({ client }) => new ReadWriteLock(client, '/rw', { layout }));
      const first = await a!.acquireRead();
      const second = await b!.acquireRead();
      let isWriting = false;
      let isReading = false;
      const writing = c!.acquireWrite().then((lock) => {
        isWriting = true;
        return lock;
      });
      await sleep(50);
      const reading = d!.acquireRead().then((lock) => {
        isReading = true;
        return lock;
      });
      await sleep(50);
      expect((await a!.contenders()).map(({ wants, isFirst }) => [wants, isFirst])).toEqual([
        ['read', true],
        ['read', true],
        ['write', false],
        ['read', false],
      ]);
      expect(await d!.tryAcquireRead()).toBeNull();
      await first.release();
      await sleep(50);
      expect([isWriting, isReading]).toEqual([false, false]);
      await second.release();
      const writer = await writing;
      await sleep(50);
      expect(isReading).toBe(false);
      expect(writer.token).toBeGreaterThan(second.token);
      await writer.release();
      await (await reading).release();
      expect(await names(one, '/rw')).toEqual([]);
    }));

  test('is downgraded without another writer in between', () =>
    inWorld(3, async ([one, two, three], { sleep }) => {
      const [a, b, c] = [one, two, three].map(({ client }) => new ReadWriteLock(client, '/rw', { layout }));
      const writing = await a!.acquireWrite();
      let isWriting = false;
      const next = b!.acquireWrite().then((lock) => {
        isWriting = true;
        return lock;
      });
      await sleep(50);
      const reader = c!.acquireRead();
      await sleep(50);
      const reading = await a!.downgrade(writing);
      expect([writing.isHeld, reading.isHeld]).toEqual([false, true]);
      // The znode of the new lock has the place of the old one, before the waiting writer.
      expect(reading.path.slice(-10)).toBe(writing.path.slice(-10));
      expect(reading.token).toBe(writing.token);
      await sleep(100);
      expect(isWriting).toBe(false);
      expect((await a!.contenders()).map(({ wants, isFirst }) => [wants, isFirst])).toEqual([
        ['read', true],
        ['write', false],
        ['read', false],
      ]);
      await reading.release();
      const writer = await next;
      expect(writer.token).toBeGreaterThan(reading.token);
      await writer.release();
      await (await reader).release();
      await expect(a!.downgrade(writing)).rejects.toBeInstanceOf(NotHeldError);
      expect(await names(one, '/rw')).toEqual([]);
    }));

  test('is downgraded also when the connection breaks at that moment', () =>
    inWorld(2, async ([one, two], { sleep, breakConnections }) => {
      const lock = new ReadWriteLock(one.client, '/rw', { layout });
      for (let afterMs = 0; afterMs < 10; afterMs++) {
        const writing = await lock.acquireWrite();
        const downgraded = lock.downgrade(writing);
        await sleep(afterMs / 2);
        breakConnections();
        const reading = await downgraded;
        expect(await names(two, '/rw')).toEqual([reading.path.slice('/rw/'.length)]);
        await reading.release();
      }
    }));

  test('is no longer a write lock from the downgrade on, and is not held when that fails', () =>
    inWorld(2, async ([one, two], { sleep, cut, heal }) => {
      const lock = new ReadWriteLock(one.client, '/rw', { layout });
      for (let step = 0; step < 12; step++) {
        const controller = new AbortController();
        const writing = await lock.acquireWrite();
        const inner = writing.reenter();
        if (step === 0) cut('host1');
        const downgraded = lock.downgrade(writing, { signal: controller.signal });
        downgraded.catch(() => {});
        // A reader may get in before the reply arrives.
        expect([writing.isHeld, inner.isHeld, inner.signal.aborted]).toEqual([false, false, true]);
        await sleep(step / 4);
        controller.abort();
        const reading = await downgraded.catch(() => null);
        heal();
        await sleep(2000);
        expect(one.client.session?.id).toBe(writing.sessionId);
        expect(await names(two, '/rw')).toHaveLength(reading === null ? 0 : 1);
        await reading?.release();
      }
    }));

  test('is not held when the session is lost during the downgrade', () =>
    inWorld(1, async ([one], { cut, heal }) => {
      const lock = new ReadWriteLock(one.client, '/rw', { layout });
      const writing = await lock.acquireWrite();
      cut('host1');
      await expect(lock.downgrade(writing)).rejects.toBeInstanceOf(NotHeldError);
      heal();
    }));

  test('is downgraded also when the service fails transiently at first', () =>
    inWorld(1, async ([one]) => {
      const { client, beforeRequest } = stepClient(one.client);
      const lock = new ReadWriteLock(client, '/rw', { layout });
      const writing = await lock.acquireWrite();
      beforeRequest(1, () => Promise.reject(new ThrottledError({ operation: 'transaction', path: null })));
      const reading = await lock.downgrade(writing);
      expect([reading.isHeld, writing.isHeld]).toEqual([true, false]);
      expect(await names(one, '/rw')).toHaveLength(1);
    }));

  test('is not downgraded with the last number of an Apache server, which others get, too', () =>
    inWorld(1, async ([one]) => {
      const { client } = one;
      const lock = new ReadWriteLock(client, '/rw', { layout });
      const path = (await lock.acquireWrite()).path.replace(/0{10}$/, '2147483647');
      const { stat } = await client.create(path, '', { mode: 'ephemeral' });
      const line = { ...sharedLockSettings({ layout }), path: '/rw', marker: '', markers: [] };
      const last = takePlace(client, line, { path, stat: stat!, lost: client.lostSignal });
      await expect(lock.downgrade(last)).rejects.toBeInstanceOf(SequenceExhaustedError);
      expect(last.isHeld).toBe(true);
      await last.release();
    }));

  test('refuses to downgrade the lock of another line, whose number would be ahead of a writer here', () =>
    inWorld(2, async ([one, two]) => {
      const other = await new ReadWriteLock(one.client, '/other', { layout }).acquireWrite();
      const lock = new ReadWriteLock(two.client, '/rw', { layout });
      const before = await lock.acquireRead();
      await expect(lock.downgrade(before)).rejects.toBeInstanceOf(BadArgumentsError);
      expect(before.isHeld).toBe(true);
      await before.release();
      const writing = await lock.acquireWrite();
      await expect(new ReadWriteLock(one.client, '/rw', { layout }).downgrade(other)).rejects.toMatchObject({
        code: 'BADARGUMENTS',
        path: other.path,
      });
      expect([other.isHeld, writing.isHeld]).toEqual([true, true]);
      expect(await lock.contenders()).toHaveLength(1);
    }));
});
