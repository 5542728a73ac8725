import {
  BadVersionError,
  type Client,
  ConnectionLossError,
  DecodeError,
  json,
  NoNodeError,
  type StandardSchema,
  text,
} from '@meerkat/client';
import { VirtualWorld } from '@meerkat/simulator';
import { expect, test } from 'vitest';
import { Configuration } from './configuration.ts';
import { PublishedSet } from './published-set.ts';

function onStage(program: (client: Client, other: Client) => Promise<void>): Promise<void> {
  const world = new VirtualWorld({ seed: 1 });
  const ensemble = world.startEnsemble({ servers: 1 });
  return world.run(async () => {
    const options = { servers: ensemble.connectString, sessionTimeoutMs: 10_000 };
    const [client, other] = await Promise.all(['app', 'other'].map((host) => world.connect(host, options)));
    await program(client!, other!);
    await Promise.all([client!.close(), other!.close()]);
  });
}

interface Settings {
  readonly port: number;
}

/** What zod, valibot and others make; by hand. */
const SETTINGS: StandardSchema<Settings> = {
  '~standard': {
    version: 1,
    vendor: 'by hand',
    validate: (value) => {
      const port = (value as Partial<Settings> | null)?.port;
      return typeof port === 'number' ? { value: { port } } : { issues: [{ message: 'port is no number' }] };
    },
  },
};

test('a configuration is plain data in its znode, and each publication a version', () =>
  onStage(async (client) => {
    const settings = new Configuration(client, '/apps/shop/config', json(SETTINGS));
    expect(await settings.get()).toBeNull();
    expect(await settings.update((current) => ({ port: (current?.port ?? 79) + 1 }))).toEqual({
      value: { port: 80 },
      version: 0,
    });
    await settings.update((current) => ({ port: (current?.port ?? 0) + 1 }));
    expect((await client.get('/apps/shop/config', { codec: text })).data).toBe('{"port":81}');
    expect(await settings.update(() => undefined)).toEqual({ value: { port: 81 }, version: 1 });
  }));

test('what the schema refuses is never published', () =>
  onStage(async (client) => {
    const settings = new Configuration(client, '/config', json(SETTINGS));
    await settings.set({ port: 80 });
    const wrong = { port: 'eighty' } as unknown as Settings;
    await expect(settings.set(wrong)).rejects.toThrow(DecodeError);
    await expect(settings.update(() => wrong)).rejects.toThrow(DecodeError);
    expect(await settings.get()).toEqual({ value: { port: 80 }, version: 0 });
  }));

test('what others have written there can be gone back to, and what the schema refuses cannot', () =>
  onStage(async (client, other) => {
    const settings = new Configuration(client, '/config', json(SETTINGS));
    await settings.set({ port: 1 });
    await other.set('/config', '{"port":2}');
    await settings.set({ port: 3 });
    expect(await settings.rollback()).toEqual({ value: { port: 2 }, version: 3 });
    expect(await settings.history()).toEqual([2, 1, 0]);
    await expect(settings.rollback({ to: 7 })).rejects.toThrow(
      'version 7 of /config is not kept; kept are: 3, 2, 1, 0',
    );

    await other.set('/config', 'broken');
    await expect(settings.get()).rejects.toThrow(DecodeError);
    await settings.set({ port: 5 });
    await expect(settings.rollback()).rejects.toThrow(DecodeError);
    expect(await settings.rollback({ to: 2 })).toMatchObject({ value: { port: 3 } });
  }));

test('no more former versions are kept than asked for', () =>
  onStage(async (client) => {
    const settings = new Configuration(client, '/config', json(SETTINGS), { keep: 3 });
    for (let port = 0; port < 10; port++) await settings.set({ port });
    expect(await settings.history()).toEqual([8, 7, 6]);
    expect(await settings.at(6)).toEqual({ port: 6 });
    expect((await client.children('/config')).children.length).toBe(4);
  }));

test('who observes a configuration sees the present one, each later one, and what is wrong with it', () =>
  onStage(async (client, other) => {
    const settings = new Configuration(client, '/config', json(SETTINGS));
    await settings.set({ port: 80 });
    await using observation = settings.observe();
    expect((await observation.ready).data).toEqual({ port: 80 });
    const next = observation.changed();
    await other.set('/config', '{}');
    expect((await next).error?.message).toContain('port is no number');
    const last = observation.changed();
    await settings.rollback();
    expect((await last).data).toEqual({ port: 80 });
  }));

test('a set is published whole, read whole, and gone back to', () =>
  onStage(async (client, other) => {
    const flags = new PublishedSet(client, '/flags', text);
    expect(await flags.read()).toBeNull();
    const first = await flags.publish({ colour: 'red', size: '12' });
    const second = await flags.publish(new Map([['colour', 'blue']]));
    const read = await new PublishedSet(other, '/flags', text).read();
    expect(read?.name).toBe(second);
    expect([...(read?.entries ?? [])]).toEqual([['colour', 'blue']]);
    expect(await flags.history()).toEqual([second, first]);

    expect(await flags.rollback()).toBe(first);
    expect(Object.fromEntries((await flags.read())?.entries ?? [])).toEqual({ colour: 'red', size: '12' });
    await expect(flags.rollback({ to: 'set-0' })).rejects.toThrow(RangeError);
  }));

test('a set that fits is one transaction, and a larger one is put in force by its last', () =>
  onStage(async (client, other) => {
    const flags = new PublishedSet(client, '/flags', text, { transactionZnodesMax: 10 });
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

test('what an abandoned publication has left is deleted by the next one', () =>
  onStage(async (client, other) => {
    const flags = new PublishedSet(client, '/flags', text, { keep: 2 });
    await flags.publish({ a: '1' });
    // As a publisher leaves it that has died: begun behind version 0, never named.
    const orphan = `set-0000000001-${'0'.repeat(32)}`;
    await other.create(`/flags/${orphan}`);
    await other.create(`/flags/${orphan}/a`, 'half');
    // As one does it that is still at work, behind a version that is yet to come.
    const busy = `set-0000000003-${'1'.repeat(32)}`;
    await other.create(`/flags/${busy}`);
    for (const value of ['2', '3']) await flags.publish({ a: value });
    const { children } = await client.children('/flags');
    expect(children).not.toContain(orphan);
    expect(children).toContain(busy);
    expect(children.length).toBe(4);
  }));

test('a publication may be bound to the set that it was made from', () =>
  onStage(async (client) => {
    const flags = new PublishedSet(client, '/flags', text);
    const first = await flags.publish({ a: '1' }, { onlyAfter: null });
    await flags.publish({ a: '2' }, { onlyAfter: first });
    await expect(flags.publish({ a: '3' }, { onlyAfter: first })).rejects.toThrow(BadVersionError);
    expect((await flags.read())?.entries.get('a')).toBe('2');
  }));

test('a reader whose set is deleted under its hands begins again', () =>
  onStage(async (client, other) => {
    const flags = new PublishedSet(other, '/flags', text, { keep: 1 });
    const first = await flags.publish({ a: '1', b: '1' });
    const children = client.children.bind(client);
    let isInTime = true;
    // Between its look at ready and its look at the set another set is published, and half of this one is deleted.
    client.children = (async (path: string) => {
      if (isInTime) {
        isInTime = false;
        await flags.publish({ a: '2', b: '2' });
        await other.create(`/flags/${first}`);
        await other.create(`/flags/${first}/a`, '1');
      }
      return children(path);
    }) as typeof client.children;
    const read = await new PublishedSet(client, '/flags', text).read();
    expect(Object.fromEntries(read?.entries ?? [])).toEqual({ a: '2', b: '2' });
    expect(isInTime).toBe(false);
  }));

test('a reader of a set that somebody has deleted by hand is told, and an observer gets the next one', () =>
  onStage(async (client, other) => {
    const flags = new PublishedSet(client, '/flags', text);
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
    // Nothing has changed that would have to be looked at again.
    expect(looks).toBe(1);
    expect(await new PublishedSet(other, '/flags', text).rollback()).toBe(first);
    expect((await next).value).toMatchObject({ name: first });
    await observation.return(undefined);
  }));

test('a rollback in doubt whose set was deleted by hand at that moment comes to an end', () =>
  onStage(async (client, other) => {
    const flags = new PublishedSet(client, '/flags', text);
    const first = await flags.publish({ a: '1' });
    await flags.publish({ a: '2' });
    const transaction = client.transaction.bind(client);
    client.transaction = () => {
      client.transaction = transaction;
      const made = transaction();
      // It never reaches the service, which the rollback cannot know.
      made.commit = async () => {
        await other.deleteRecursive(`/flags/${first}`);
        throw new ConnectionLossError({ operation: 'transaction', path: null, outcome: 'unknown' });
      };
      return made;
    };
    await expect(flags.rollback({ timeoutMs: 60_000 })).rejects.toThrow(RangeError);
  }));

test('a rollback goes back to what was in force before the version that it replaces, not before one that it saw', () =>
  onStage(async (client, other) => {
    const settings = new Configuration(client, '/config', text);
    for (const value of ['first', 'second', 'third']) await settings.set(value);
    const transaction = client.transaction.bind(client);
    client.transaction = () => {
      client.transaction = transaction;
      const made = transaction();
      const commit = made.commit.bind(made);
      made.commit = async (options) => {
        await new Configuration(other, '/config', text).set('fourth');
        return commit(options);
      };
      return made;
    };
    expect(await settings.rollback()).toEqual({ value: 'third', version: 4 });
  }));

test('an update does not leave a configuration as it is by what a server shows that lags behind', () =>
  onStage(async (client, other) => {
    const settings = new Configuration(client, '/config', text);
    const get = client.get.bind(client);
    let isBehind = false;
    client.get = (async (path: string, options: { readonly read?: string } = {}) => {
      isBehind ||= options.read === 'local';
      if (options.read === 'local') throw new NoNodeError({ operation: 'get', path });
      return get(path, options as never);
    }) as typeof client.get;
    await new Configuration(other, '/config', text).set('there');
    const found = await settings.update((current) => (current === null ? undefined : `${current} again`));
    expect(isBehind).toBe(true);
    expect(found).toEqual({ value: 'there again', version: 1 });
  }));

test.each(['a/b', '', '/'])('a set with an entry that cannot be the name of a znode is refused: "%s"', (name) =>
  onStage(async (client) => {
    const flags = new PublishedSet(client, '/flags', text);
    await flags.publish({ a: '1' });
    await expect(flags.publish({ [name]: '2' }, { timeoutMs: 5000 })).rejects.toThrow(RangeError);
    expect(Object.fromEntries((await flags.read())?.entries ?? [])).toEqual({ a: '1' });
  }),
);

test('a publication in parts whose set another publisher takes for an orphan begins again', () =>
  onStage(async (client, other) => {
    const flags = new PublishedSet(client, '/flags', text, { transactionZnodesMax: 2 });
    const transaction = client.transaction.bind(client);
    let parts = 0;
    client.transaction = () => {
      const made = transaction();
      const commit = made.commit.bind(made);
      made.commit = async (options) => {
        // Between two parts somebody else is faster, and cleans up what can never be in force any more.
        if (++parts === 2) await new PublishedSet(other, '/flags', text).publish({ x: 'faster' });
        return commit(options);
      };
      return made;
    };
    const name = await flags.publish({ a: '1', b: '2', c: '3' });
    const read = await flags.read();
    expect(read?.name).toBe(name);
    expect(Object.fromEntries(read?.entries ?? [])).toEqual({ a: '1', b: '2', c: '3' });
  }));

test('a set that somebody has deleted by hand is not gone back to', () =>
  onStage(async (client, other) => {
    const flags = new PublishedSet(client, '/flags', text);
    const first = await flags.publish({ a: '1' });
    const second = await flags.publish({ a: '2' });
    await other.deleteRecursive(`/flags/${first}`);
    await expect(flags.rollback({ timeoutMs: 5000 })).rejects.toThrow(RangeError);
    expect((await flags.read())?.name).toBe(second);
  }));

test('a publication that gives up while others are faster says that nothing was published', () =>
  onStage(async (client, other) => {
    const theirs = new Configuration(other, '/config', text);
    const settings = new Configuration(client, '/config', text);
    let n = 0;
    const update = settings.update(
      async () => {
        await theirs.set(`faster ${++n}`);
        return 'slower';
      },
      { timeoutMs: 2000 },
    );
    await expect(update).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });

    const flags = new PublishedSet(client, '/flags', text);
    const faster = new PublishedSet(other, '/flags', text);
    const transaction = client.transaction.bind(client);
    client.transaction = () => {
      const made = transaction();
      const commit = made.commit.bind(made);
      made.commit = async (options) => {
        await faster.publish({ a: `faster ${++n}` });
        return commit(options);
      };
      return made;
    };
    const publication = flags.publish({ a: 'slower' }, { timeoutMs: 2000 });
    await expect(publication).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
    expect((await theirs.get())?.value).toMatch(/^faster/);
    expect((await faster.read())?.entries.get('a')).toMatch(/^faster/);
  }));

test('former versions that this recipe has published stay, however often others have written since', () =>
  onStage(async (client, other) => {
    const settings = new Configuration(client, '/config', text, { keep: 2 });
    for (const value of ['one', 'two', 'three', 'four']) await settings.set(value);
    for (let i = 1; i <= 5; i++) await other.set('/config', `by hand ${i}`);
    await settings.set('five');
    expect(await settings.history()).toEqual([8, 3]);
    expect(await settings.at(3)).toBe('four');
    expect(await settings.rollback({ to: 3 })).toEqual({ value: 'four', version: 10 });
    expect(await settings.history()).toEqual([9, 8]);
  }));
