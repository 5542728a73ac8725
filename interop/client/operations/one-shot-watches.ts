import { NoWatcherError } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { errorOf, outcomeOf } from '../outcome.ts';
import type { Site } from './site.ts';

/** One-shot watches. */
export function testOneShotWatches(site: Site): void {
  describe('one-shot watches', () => {
    test('each read is notified of the first change of its result', async () => {
      await using client = await site.connect();
      await using other = await site.connect();
      const path = site.freshPath();
      const absent = await client.exists(path, { watch: true });
      expect(absent.stat).toBeNull();
      await other.create(path);
      expect(await absent.changed).toMatchObject({ type: 'created', path });

      const present = await client.exists(path, { watch: true });
      const read = await client.get(path, { watch: true });
      expect(present.stat).toMatchObject({ version: 0 });
      await other.set(path, 'x');
      expect(await present.changed).toMatchObject({ type: 'changed', path });
      expect(await read.changed).toMatchObject({ type: 'changed', path });

      const listed = await client.children(path, { watch: true });
      await other.set(path, 'y');
      await other.create(`${path}/child`);
      expect(await listed.changed).toMatchObject({ type: 'children', path });
      await other.delete(`${path}/child`);

      const all = [
        await client.exists(path, { watch: true }),
        await client.get(path, { watch: true }),
        await client.children(path, { watch: true }),
      ];
      await other.delete(path);
      for (const { changed } of all) expect(await changed).toMatchObject({ type: 'deleted', path });
    });

    test('a watch delivers its event before any read shows the change, and only once', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      await client.create(path);
      const order: string[] = [];
      const { changed } = await client.get(path, { watch: true });
      void changed.then(() => order.push('event'));
      await Promise.all([
        client.set(path, '1').then(() => order.push('set')),
        client.get(path).then(({ stat }) => order.push(`read ${stat.version}`)),
        client.set(path, '2').then(() => order.push('set')),
      ]);
      expect(order).toEqual(['event', 'set', 'read 1', 'set']);
    });

    test('a refused read leaves no watch', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      expect((await errorOf(client.get(path, { watch: true }))).code).toBe('NONODE');
      expect((await errorOf(client.children(path, { watch: true }))).code).toBe('NONODE');
      expect(await client.checkWatches(path, 'any')).toBe(false);
    });

    test('watches are checked and removed by type; a waiting caller is notified', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      await client.create(path);
      expect(await client.checkWatches(path, 'any')).toBe(false);
      expect(await errorOf(client.removeWatches(path, 'any'))).toBeInstanceOf(NoWatcherError);
      const data = await client.get(path, { watch: true });
      const children = await client.children(path, { watch: true });
      for (const kind of ['data', 'children', 'any'] as const) expect(await client.checkWatches(path, kind)).toBe(true);

      await client.removeWatches(path, 'data');
      expect(await client.checkWatches(path, 'data')).toBe(false);
      expect(await client.checkWatches(path, 'children')).toBe(true);
      expect((await outcomeOf(data.changed)).ok).toBe(false);
      expect(await errorOf(client.removeWatches(path, 'data'))).toBeInstanceOf(NoWatcherError);
      await client.create(`${path}/child`);
      expect(await children.changed).toMatchObject({ type: 'children', path });
      expect(await client.checkWatches(path, 'any')).toBe(false);

      const again = [await client.get(path, { watch: true }), await client.children(path, { watch: true })];
      await client.removeWatches(path, 'any');
      for (const { changed } of again) expect((await outcomeOf(changed)).ok).toBe(false);
      expect(await client.checkWatches(path, 'any')).toBe(false);
    });

    test('many watches on one znode all fire', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      await client.create(path);
      const watched = await Promise.all(Array.from({ length: 200 }, () => client.get(path, { watch: true })));
      await client.set(path, 'x');
      const events = await Promise.all(watched.map(({ changed }) => changed));
      expect(new Set(events.map(({ type }) => type))).toEqual(new Set(['changed']));
    });
  });
}
