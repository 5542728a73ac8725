import { BadVersionError, ConnectionLossError, json, NoNodeError, text } from '@meerkat/client';
import { expect, test } from 'vitest';
import { aroundCommits, lostCommit } from '../testing/commits.ts';
import { onStage } from '../testing/stage.ts';
import { PublishedSet } from './published-set.ts';

test('a set is published and read as a whole, and can be restored', () =>
  onStage(async ({ client, other }) => {
    const flags = new PublishedSet(client, '/flags', { codec: text });
    expect(await flags.read()).toBeNull();
    const first = await flags.publish({ colour: 'red', size: '12' });
    const second = await flags.publish(new Map([['colour', 'blue']]));
    const read = await new PublishedSet(other, '/flags', { codec: text }).read();
    expect(read?.name).toBe(second);
    expect([...(read?.entries ?? [])]).toEqual([['colour', 'blue']]);
    expect(await flags.history()).toEqual([second, first]);

    expect(await flags.rollback()).toBe(first);
    expect(Object.fromEntries((await flags.read())?.entries ?? [])).toEqual({ colour: 'red', size: '12' });
    await expect(flags.rollback({ to: 'set-0' })).rejects.toThrow(RangeError);
  }));

test('a set that fits is one transaction, and a larger one is put in force by its last one', () =>
  onStage(async ({ client, other }) => {
    const flags = new PublishedSet(client, '/flags', { codec: text, transactionZnodesMax: 10 });
    await using watch = other.watch('/flags', { recursive: true });
    await watch.ready;
    const zxids = async (): Promise<number> => {
      await other.sync();
      const seen = new Set<bigint | null>();
      for (let event = watch.take(); event !== null; event = watch.take())
        if (event.type !== 'gap') seen.add(event.zxid);
      return seen.size;
    };
    await flags.publish({ a: '1' });
    // The parent, and then all at once.
    expect(await zxids()).toBe(2);
    await flags.publish({ a: '1', b: '2' });
    expect(await zxids()).toBe(1);
    await flags.publish(Object.fromEntries(Array.from({ length: 25 }, (_, i) => [`f${i}`, `${i}`])));
    expect(await zxids()).toBe(5);
    expect((await flags.read())?.entries.size).toBe(25);
  }));

test('leftovers of an abandoned publication are deleted by the next one', () =>
  onStage(async ({ client, other }) => {
    const flags = new PublishedSet(client, '/flags', { codec: text, keep: 2 });
    await flags.publish({ a: '1' });
    // As left by a publisher that has died: begun after version 0, never named.
    const orphan = `set-0000000001-${'0'.repeat(32)}`;
    await other.create(`/flags/${orphan}`);
    await other.create(`/flags/${orphan}/a`, 'half');
    // As of a publisher that is still at work, after a version that is yet to come.
    const busy = `set-0000000003-${'1'.repeat(32)}`;
    await other.create(`/flags/${busy}`);
    // Its version is the one of the orphan.
    await flags.publish({ a: '2' });
    expect((await client.children('/flags')).children).not.toContain(orphan);
    await flags.publish({ a: '3' });
    const { children } = await client.children('/flags');
    expect(children).toContain(busy);
    expect(children.length).toBe(4);
  }));

test('a publication can be conditional on the set that it was derived from', () =>
  onStage(async ({ client }) => {
    const flags = new PublishedSet(client, '/flags', { codec: text });
    const first = await flags.publish({ a: '1' }, { onlyAfter: null });
    await flags.publish({ a: '2' }, { onlyAfter: first });
    await expect(flags.publish({ a: '3' }, { onlyAfter: first })).rejects.toThrow(BadVersionError);
    expect((await flags.read())?.entries.get('a')).toBe('2');
  }));

test('a reader whose set is deleted meanwhile starts again', () =>
  onStage(async ({ client, other }) => {
    const flags = new PublishedSet(other, '/flags', { codec: text, keep: 1 });
    const first = await flags.publish({ a: '1', b: '1' });
    const children = client.children.bind(client);
    let isInTime = true;
    // Between its reads of ready and of the set, another set is published, and half of this one is deleted.
    client.children = (async (path: string) => {
      if (isInTime) {
        isInTime = false;
        await flags.publish({ a: '2', b: '2' });
        await other.create(`/flags/${first}`);
        await other.create(`/flags/${first}/a`, '1');
      }
      return children(path);
    }) as typeof client.children;
    const read = await new PublishedSet(client, '/flags', { codec: text }).read();
    expect(Object.fromEntries(read?.entries ?? [])).toEqual({ a: '2', b: '2' });
    expect(isInTime).toBe(false);
  }));

test('a reader of a set that was deleted by hand gets an error, and an observer the next one', () =>
  onStage(async ({ client, other }) => {
    const flags = new PublishedSet(client, '/flags', { codec: text });
    const first = await flags.publish({ a: '1' });
    const second = await flags.publish({ a: '2' });
    await other.deleteRecursive(`/flags/${second}`);
    await expect(flags.read({ timeoutMs: 60_000 })).rejects.toThrow(NoNodeError);

    const children = client.children.bind(client);
    let looks = 0;
    client.children = (async (...args: Parameters<typeof children>) => {
      looks++;
      return children(...args);
    }) as typeof client.children;
    const observation = flags.observe();
    const next = observation.next();
    await new Promise<void>((resolve) => client.surroundings.clock.schedule(60_000, resolve));
    // Nothing has changed that requires another look.
    expect(looks).toBe(1);
    expect(await new PublishedSet(other, '/flags', { codec: text }).rollback()).toBe(first);
    expect((await next).value).toMatchObject({ name: first });
    await observation.return(undefined);
  }));

test('a rollback in doubt whose set was deleted by hand at that moment ends', () =>
  onStage(async ({ client, other }) => {
    const flags = new PublishedSet(client, '/flags', { codec: text });
    const first = await flags.publish({ a: '1' });
    await flags.publish({ a: '2' });
    const transaction = client.transaction.bind(client);
    client.transaction = () => {
      client.transaction = transaction;
      const made = transaction();
      // It never reaches the service, which the rollback cannot know.
      made.commit = async () => {
        await other.deleteRecursive(`/flags/${first}`);
        throw lostCommit();
      };
      return made;
    };
    await expect(flags.rollback({ timeoutMs: 60_000 })).rejects.toThrow(RangeError);
  }));

test.each(['a/b', '', '/'])('a set with an entry that cannot be the name of a znode is refused: "%s"', (name) =>
  onStage(async ({ client }) => {
    const flags = new PublishedSet(client, '/flags', { codec: text });
    await flags.publish({ a: '1' });
    await expect(flags.publish({ [name]: '2' }, { timeoutMs: 5000 })).rejects.toThrow(RangeError);
    expect(Object.fromEntries((await flags.read())?.entries ?? [])).toEqual({ a: '1' });
  }),
);

test('a publication in parts whose set another publisher takes for an orphan starts again', () =>
  onStage(async ({ client, other }) => {
    const flags = new PublishedSet(client, '/flags', { codec: text, transactionZnodesMax: 2 });
    let parts = 0;
    aroundCommits(client, async (commit) => {
      // Between two parts another client is faster, and deletes the set that can no longer be in force.
      if (++parts === 2) await new PublishedSet(other, '/flags', { codec: text }).publish({ x: 'faster' });
      return commit();
    });
    const name = await flags.publish({ a: '1', b: '2', c: '3' });
    const read = await flags.read();
    expect(read?.name).toBe(name);
    expect(Object.fromEntries(read?.entries ?? [])).toEqual({ a: '1', b: '2', c: '3' });
  }));

test('a set that was deleted by hand cannot be restored', () =>
  onStage(async ({ client, other }) => {
    const flags = new PublishedSet(client, '/flags', { codec: text });
    const first = await flags.publish({ a: '1' });
    const second = await flags.publish({ a: '2' });
    await other.deleteRecursive(`/flags/${first}`);
    await expect(flags.rollback({ timeoutMs: 5000 })).rejects.toThrow(RangeError);
    expect((await flags.read())?.name).toBe(second);
  }));

test('a publication that is cancelled after lost races reports that nothing was published', () =>
  onStage(async ({ client, other }) => {
    let n = 0;
    const flags = new PublishedSet(client, '/flags', { codec: text });
    const faster = new PublishedSet(other, '/flags', { codec: text });
    aroundCommits(client, async (commit) => {
      await faster.publish({ a: `faster ${++n}` });
      return commit();
    });
    const publication = flags.publish({ a: 'slower' }, { timeoutMs: 2000 });
    await expect(publication).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
    expect((await faster.read())?.entries.get('a')).toMatch(/^faster/);
  }));

test('a publication in parts that is cancelled reports that nothing was published', () =>
  onStage(async ({ client }) => {
    const flags = new PublishedSet(client, '/flags', { codec: text, transactionZnodesMax: 2 });
    const controller = new AbortController();
    aroundCommits(client, (commit) => {
      const committing = commit();
      controller.abort();
      return committing;
    });
    const publication = flags.publish({ a: '1', b: '2', c: '3' }, { signal: controller.signal });
    await expect(publication).rejects.toMatchObject({ code: 'ABORTED', outcome: 'not-applied', path: '/flags' });
    expect(await flags.history()).toEqual([]);
  }));

test('cancelling a publication in doubt rejects with AbortedError and an unknown outcome', () =>
  onStage(async ({ client }) => {
    const flags = new PublishedSet(client, '/flags', { codec: text });
    await flags.publish({ a: '1' });
    const controller = new AbortController();
    const transaction = client.transaction.bind(client);
    client.transaction = () => {
      const made = transaction();
      made.commit = async () => {
        controller.abort();
        throw new ConnectionLossError({ operation: 'transaction', path: null });
      };
      return made;
    };
    const publication = flags.publish({ a: '2' }, { signal: controller.signal });
    await expect(publication).rejects.toMatchObject({ code: 'ABORTED', outcome: 'unknown' });
  }));

test('invalid data in a set is reported with its znode', () =>
  onStage(async ({ client, other }) => {
    const flags = new PublishedSet(client, '/flags', { codec: json<number>() });
    const name = await flags.publish({ a: 1 });
    await other.set(`/flags/${name}/a`, '{');
    await expect(flags.read()).rejects.toMatchObject({ code: 'DECODEFAILED', path: `/flags/${name}/a` });
  }));

test('an observation ends when the client is closed, also during a read', () =>
  onStage(async ({ client, other }) => {
    await new PublishedSet(other, '/flags', { codec: text }).publish({ a: '1' });
    const children = client.children.bind(client);
    client.children = (async (path: string) => {
      await client.close();
      return children(path);
    }) as typeof client.children;
    const seen: unknown[] = [];
    for await (const set of new PublishedSet(client, '/flags', { codec: text }).observe()) seen.push(set);
    expect(seen).toEqual([]);
  }));

test('a ReadonlyMap that is not a Map can be published', () =>
  onStage(async ({ client }) => {
    const inner = new Map([['colour', 'red']]);
    // Like an observable or immutable map: it has all of ReadonlyMap, but is no instance of Map.
    const other = new Proxy(Object.create(null) as ReadonlyMap<string, string>, {
      has: (_, key) => Reflect.has(inner, key),
      get: (_, key) => {
        const member: unknown = Reflect.get(inner, key);
        return typeof member === 'function' ? member.bind(inner) : member;
      },
    });
    const flags = new PublishedSet(client, '/flags', { codec: text });
    await flags.publish(other);
    expect([...((await flags.read())?.entries ?? [])]).toEqual([['colour', 'red']]);
  }));

test('names count in bytes when a set is divided into transactions', () =>
  onStage(async ({ client }) => {
    const flags = new PublishedSet(client, '/flags', { codec: text });
    const names = Array.from({ length: 480 }, (_, i) => `${i}${'夜'.repeat(800)}`);
    await flags.publish(new Map(names.map((name) => [name, 'x'])));
    expect((await flags.read())?.entries.size).toBe(480);
  }));
