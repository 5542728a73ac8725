import {
  BadArgumentsError,
  BadVersionError,
  NoChildrenForEphemeralsError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
} from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import { errorOf, errorsOf } from '../outcome.ts';
import { type Site, text } from './site.ts';

/** Create, read, update and delete. */
export function testZnodes(site: Site): void {
  describe('znodes', () => {
    test('create returns the path and Stat, and the data read back are equal', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      const created = await client.create(path, 'hello');
      expect(created.path).toBe(path);
      expect(created.stat).toMatchObject({ version: 0, cversion: 0, aversion: 0, ephemeralOwner: 0n, dataLength: 5 });
      expect(created.stat.czxid).toBeGreaterThan(0n);
      expect([created.stat.mzxid, created.stat.pzxid]).toEqual([created.stat.czxid, created.stat.czxid]);
      expect(created.stat.ctime).toBe(created.stat.mtime);
      const znode = await client.get(path);
      expect(text(znode.data)).toBe('hello');
      expect({ ...znode.stat }).toEqual({ ...created.stat });
      expect({ ...(await client.exists(path)) }).toEqual({ ...created.stat });
    });

    test.each([
      ['no data', undefined, ''],
      ['null', null, ''],
      ['an empty text', '', ''],
      ['text outside of ASCII', 'grüße 🦡', 'grüße 🦡'],
    ])('%s is stored and read', async (_title, data, expected) => {
      await using client = await site.connect();
      const path = site.freshPath();
      const { stat } = await client.create(path, data);
      const read = await client.get(path);
      expect(read.data).toBeInstanceOf(Uint8Array);
      expect(text(read.data)).toBe(expected);
      expect(stat.dataLength).toBe(new TextEncoder().encode(expected).length);
    });

    test('every byte value survives a round trip', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      const data = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 31) & 0xff);
      await client.create(path, data);
      const [first, second] = await Promise.all([client.get(path), client.get(path)]);
      expect(Buffer.compare(first.data, data)).toBe(0);
      // No shared memory: a reader that modifies its copy does not affect another.
      first.data.fill(0);
      expect(Buffer.compare(second.data, data)).toBe(0);
    });

    test('an ephemeral znode belongs to the session and is deleted with it', async () => {
      await using observer = await site.connect();
      const path = site.freshPath();
      const owner = await site.connect();
      const { stat } = await owner.create(path, null, { mode: 'ephemeral' });
      expect(stat.ephemeralOwner).toBe(owner.session?.id);
      expect(stat.isEphemeral).toBe(true);
      expect(await owner.ephemerals()).toEqual([path]);
      expect(await owner.ephemerals(path)).toEqual([path]);
      expect(await owner.ephemerals(`${path}/none`)).toEqual([]);
      expect(await observer.ephemerals()).toEqual([]);
      expect(await errorOf(owner.create(`${path}/child`))).toBeInstanceOf(NoChildrenForEphemeralsError);
      await owner.close();
      expect(await observer.exists(path)).toBeNull();
    });

    test('sequential znodes are numbered in call order, ephemeral or not', async () => {
      await using client = await site.connect();
      const parent = site.freshPath();
      await client.create(parent);
      const made = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          client.create(`${parent}/n-`, String(i), {
            sequential: true,
            mode: i % 2 === 0 ? 'persistent' : 'ephemeral',
          }),
        ),
      );
      expect(made.map(({ path }) => path)).toEqual(made.map((_, i) => `${parent}/n-${String(i).padStart(10, '0')}`));
      expect(made.map(({ stat }) => stat.isEphemeral)).toEqual(made.map((_, i) => i % 2 === 1));
      // A name that consists of the number only.
      const { path } = await client.create(`${parent}/`, null, { sequential: true });
      expect(path).toBe(`${parent}/0000000020`);
    });

    test('containers and TTL znodes are created, the latter also sequential', async () => {
      await using client = await site.connect();
      const parent = site.freshPath();
      const container = await client.create(parent, 'c', { mode: 'container' });
      expect(container.stat.ephemeralOwner).toBe(0n);
      expect((await client.create(`${parent}/t`, 'x', { ttlMs: 3_600_000 })).path).toBe(`${parent}/t`);
      const { path } = await client.create(`${parent}/t-`, 'x', { ttlMs: 3_600_000, sequential: true });
      expect(path).toBe(`${parent}/t-0000000001`);
      expect(text((await client.get(path)).data)).toBe('x');
    });

    test.each([
      ['a relative path', 'a'],
      ['an empty path', ''],
      ['a slash at the end', '/a/'],
      ['an empty name', '/a//b'],
      ['a dot', '/a/./b'],
      ['two dots', '/a/..'],
      ['a NUL', '/a\u0000b'],
      ['a surrogate', '/a\ud800'],
    ])('%s is refused by every method before anything is sent', async (_title, path) => {
      await using client = await site.connect();
      for (const error of await errorsOf([
        client.create(path),
        client.get(path),
        client.get(path, { watch: true }),
        client.exists(path),
        client.children(path),
        client.set(path, ''),
        client.delete(path),
        client.getAcl(path),
        client.setAcl(path, []),
        client.sync(path),
        client.descendantCount(path),
        client.checkWatches(path, 'any'),
        client.removeWatches(path, 'any'),
      ])) {
        expect(error).toBeInstanceOf(BadArgumentsError);
        expect(error).toMatchObject({ path, server: null, outcome: 'not-applied' });
      }
    });

    test('a failed create reports why', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      expect(await errorOf(client.create(`${path}/child`))).toBeInstanceOf(NoNodeError);
      await client.create(path);
      expect(await errorOf(client.create(path))).toBeInstanceOf(NodeExistsError);
      expect(await errorOf(client.create(`${path}/c`, '', { mode: 'container', sequential: true }))).toBeInstanceOf(
        BadArgumentsError,
      );
      expect(await errorOf(client.create(`${path}/c`, '', { mode: 'ephemeral', ttlMs: 1 }))).toBeInstanceOf(
        BadArgumentsError,
      );
      for (const ttlMs of [0, -1, 1.5, 2 ** 40, Number.NaN]) {
        expect(await errorOf(client.create(`${path}/t`, '', { ttlMs }))).toBeInstanceOf(BadArgumentsError);
      }
      expect((await client.children(path)).children).toEqual([]);
    });

    test('set increments the version, and refuses a different expected version', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      await client.create(path, 'a');
      expect((await client.set(path, 'b')).version).toBe(1);
      expect((await client.set(path, 'c', { version: 1 })).version).toBe(2);
      expect((await client.set(path, 'd', { version: -1 })).version).toBe(3);
      const refused = await errorOf(client.set(path, 'e', { version: 2 }));
      expect(refused).toBeInstanceOf(BadVersionError);
      expect(await errorOf(client.delete(path, { version: 2 }))).toBeInstanceOf(BadVersionError);
      expect(text((await client.get(path)).data)).toBe('d');
      await client.set(path, null);
      expect((await client.get(path)).stat).toMatchObject({ version: 4, dataLength: 0 });
      await client.delete(path, { version: 4 });
      expect(await client.exists(path)).toBeNull();
      for (const error of await errorsOf([
        client.set(path, ''),
        client.delete(path),
        client.get(path),
        client.children(path),
        client.descendantCount(path),
      ])) {
        expect(error).toBeInstanceOf(NoNodeError);
      }
    });

    test('children are listed with the Stat of the parent, and counted at any depth', async () => {
      await using client = await site.connect();
      const parent = site.freshPath();
      await client.create(parent);
      await client.create(`${parent}/a`);
      await client.create(`${parent}/b`);
      await client.create(`${parent}/a/deep`);
      const { children, stat } = await client.children(parent);
      expect([...children].sort()).toEqual(['a', 'b']);
      expect(stat).toMatchObject({ numChildren: 2, cversion: 2 });
      expect(await client.descendantCount(parent)).toBe(3);
      expect(await errorOf(client.delete(parent))).toBeInstanceOf(NotEmptyError);
      await client.delete(`${parent}/b`);
      expect((await client.children(parent)).stat).toMatchObject({ numChildren: 1, cversion: 3 });
      expect((await client.children('/')).children).toContain('zookeeper');
    });

    test('an error states the operation, the path, the server, the code, and that nothing was applied', async () => {
      await using client = await site.connect();
      const path = site.freshPath();
      const error = await errorOf(client.set(path, 'x'));
      expect(error).toMatchObject({
        name: 'NoNodeError',
        code: 'NONODE',
        errorCode: -101,
        path,
        operation: 'set',
        server: site.address,
        outcome: 'not-applied',
        isRetryable: false,
      });
      expect(error.message).toContain(`set ${path}`);
      expect(error.message).toContain(site.address);
    });
  });
}
