import {
  type Client,
  ConnectionLossError,
  DecodeError,
  json,
  NoNodeError,
  type StandardSchema,
  text,
} from '@meerkat/client';
import { expect, test } from 'vitest';
import { aroundNextCommit } from '../testing/commits.ts';
import { onStage } from '../testing/stage.ts';
import { Configuration } from './configuration.ts';

interface Settings {
  readonly port: number;
}

/** A schema as of zod, valibot and others, written by hand. */
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

test('a configuration is plain data in its znode, and each publication is a version', () =>
  onStage(async ({ client }) => {
    const settings = new Configuration(client, '/apps/shop/config', { codec: json(SETTINGS) });
    expect(await settings.get()).toBeNull();
    expect(await settings.update((current) => ({ port: (current?.port ?? 79) + 1 }))).toEqual({
      value: { port: 80 },
      version: 0,
    });
    await settings.update((current) => ({ port: (current?.port ?? 0) + 1 }));
    expect((await client.get('/apps/shop/config', { codec: text })).data).toBe('{"port":81}');
    expect(await settings.update(() => undefined)).toEqual({ value: { port: 81 }, version: 1 });
  }));

test('a value that the schema refuses is never published', () =>
  onStage(async ({ client }) => {
    const settings = new Configuration(client, '/config', { codec: json(SETTINGS) });
    await settings.set({ port: 80 });
    const wrong = { port: 'eighty' } as unknown as Settings;
    await expect(settings.set(wrong)).rejects.toThrow(DecodeError);
    await expect(settings.update(() => wrong)).rejects.toThrow(DecodeError);
    expect(await settings.get()).toEqual({ value: { port: 80 }, version: 0 });
  }));

test('a version written by another program can be rolled back to, but not one that the schema refuses', () =>
  onStage(async ({ client, other }) => {
    const settings = new Configuration(client, '/config', { codec: json(SETTINGS) });
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

test('no more former versions are kept than configured', () =>
  onStage(async ({ client }) => {
    const settings = new Configuration(client, '/config', { codec: json(SETTINGS), keep: 3 });
    for (let port = 0; port < 10; port++) await settings.set({ port });
    expect(await settings.history()).toEqual([8, 7, 6]);
    expect(await settings.at(6)).toEqual({ port: 6 });
    expect((await client.children('/config')).children.length).toBe(4);
  }));

test('an observer sees the current configuration, each later one, and decoding errors', () =>
  onStage(async ({ client, other }) => {
    const settings = new Configuration(client, '/config', { codec: json(SETTINGS) });
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

test('a rollback restores the predecessor of the version that it replaces, not of an earlier one that it saw', () =>
  onStage(async ({ client, other }) => {
    const settings = new Configuration(client, '/config', { codec: text });
    for (const value of ['first', 'second', 'third']) await settings.set(value);
    aroundNextCommit(client, async (commit) => {
      await new Configuration(other, '/config', { codec: text }).set('fourth');
      return commit();
    });
    expect(await settings.rollback()).toEqual({ value: 'third', version: 4 });
  }));

test('an update does not leave a configuration unchanged because of a stale read from a lagging server', () =>
  onStage(async ({ client, other }) => {
    const settings = new Configuration(client, '/config', { codec: text });
    const get = client.get.bind(client);
    let isBehind = false;
    client.get = (async (path: string, options: { readonly read?: string } = {}) => {
      isBehind ||= options.read === 'local';
      if (options.read === 'local') throw new NoNodeError({ operation: 'get', path });
      return get(path, options as never);
    }) as typeof client.get;
    await new Configuration(other, '/config', { codec: text }).set('there');
    const found = await settings.update((current) => (current === null ? undefined : `${current} again`));
    expect(isBehind).toBe(true);
    expect(found).toEqual({ value: 'there again', version: 1 });
  }));

test('an update that is cancelled after lost races reports that nothing was published', () =>
  onStage(async ({ client, other }) => {
    const theirs = new Configuration(other, '/config', { codec: text });
    const settings = new Configuration(client, '/config', { codec: text });
    let n = 0;
    const update = settings.update(
      async () => {
        await theirs.set(`faster ${++n}`);
        return 'slower';
      },
      { timeoutMs: 2000 },
    );
    await expect(update).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
    expect((await theirs.get())?.value).toMatch(/^faster/);
  }));

test('former versions published by this recipe stay, however often other programs have written since', () =>
  onStage(async ({ client, other }) => {
    const settings = new Configuration(client, '/config', { codec: text, keep: 2 });
    for (const value of ['one', 'two', 'three', 'four']) await settings.set(value);
    for (let i = 1; i <= 5; i++) await other.set('/config', `by hand ${i}`);
    await settings.set('five');
    expect(await settings.history()).toEqual([8, 3]);
    expect(await settings.at(3)).toBe('four');
    expect(await settings.rollback({ to: 3 })).toEqual({ value: 'four', version: 10 });
    expect(await settings.history()).toEqual([9, 8]);
  }));

/** Calls `act` with the next commit of a client's transaction. */
function onNextCommit(client: Client, act: (commit: () => Promise<unknown>) => Promise<void>): void {
  const transaction = client.transaction.bind(client);
  client.transaction = () => {
    client.transaction = transaction;
    const made = transaction();
    const commit = made.commit.bind(made);
    made.commit = async () => {
      await act(commit);
      throw new ConnectionLossError({ operation: 'transaction', path: null });
    };
    return made;
  };
}

test('an update in doubt is not applied again when others keep so few versions that its copy is gone', () =>
  onStage(async ({ client, other }) => {
    const settings = new Configuration(client, '/config', { codec: text });
    const frugal = new Configuration(other, '/config', { codec: text, keep: 1 });
    await settings.set('a');
    onNextCommit(client, async (commit) => {
      await commit();
      for (const letter of ['c', 'd', 'e']) await frugal.update((current) => `${current}${letter}`);
    });
    const update = settings.update((current) => `${current}b`);
    await expect(update).rejects.toMatchObject({ code: 'CONNECTIONLOSS', outcome: 'unknown' });
    expect((await settings.get())?.value).toBe('abcde');
  }));

test('an update in doubt that was not applied is applied upon what others have published meanwhile', () =>
  onStage(async ({ client, other }) => {
    const settings = new Configuration(client, '/config', { codec: text });
    const frugal = new Configuration(other, '/config', { codec: text, keep: 1 });
    await settings.set('a');
    onNextCommit(client, async () => void (await frugal.update((current) => `${current}c`)));
    expect(await settings.update((current) => `${current}b`)).toEqual({ value: 'acb', version: 2 });
  }));

test('an update in doubt is not applied again when the configuration was deleted with its copies', () =>
  onStage(async ({ client, other }) => {
    const settings = new Configuration(client, '/config', { codec: text });
    await settings.set('a');
    onNextCommit(client, async (commit) => {
      await commit();
      await other.deleteRecursive('/config');
    });
    const update = settings.update((current) => `${current}b`);
    await expect(update).rejects.toMatchObject({ code: 'CONNECTIONLOSS', outcome: 'unknown' });
    expect(await settings.get()).toBeNull();
  }));

test('the caller is not asked again while an update in doubt may still be applied', () =>
  onStage(async ({ client }) => {
    const settings = new Configuration(client, '/config', { codec: text });
    await settings.set('a');
    let comeThrough = async (): Promise<unknown> => null;
    onNextCommit(client, async (commit) => {
      comeThrough = commit;
    });
    let asked = 0;
    const update = await settings.update((current) => (++asked === 1 ? `${current}b` : undefined));
    await comeThrough().catch(() => {});
    expect([asked, update, await settings.get()]).toEqual([1, { value: 'ab', version: 1 }, update]);
  }));

test('an update that is cancelled during the change callback reports that nothing was published', () =>
  onStage(async ({ client, other }) => {
    const settings = new Configuration(client, '/config', { codec: text });
    let asked = 0;
    const change = async (): Promise<string> => {
      await new Configuration(other, '/config', { codec: text }).set('faster');
      return ++asked === 1 ? 'slower' : new Promise(() => {});
    };
    const update = settings.update(change, { timeoutMs: 2000 });
    await expect(update).rejects.toMatchObject({ code: 'TIMEOUT', outcome: 'not-applied' });
    expect(asked).toBe(2);
  }));

test('cancelling an update in doubt rejects with AbortedError and an unknown outcome', () =>
  onStage(async ({ client }) => {
    const settings = new Configuration(client, '/config', { codec: text });
    const controller = new AbortController();
    onNextCommit(client, async () => controller.abort('enough'));
    const update = settings.set('a', { signal: controller.signal });
    await expect(update).rejects.toMatchObject({ code: 'ABORTED', outcome: 'unknown', cause: 'enough' });
  }));
