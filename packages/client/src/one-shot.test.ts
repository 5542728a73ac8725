import { TestServer } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { connect } from './connect.ts';
import { AuthFailedError, ClosedError, NoWatcherError } from './errors.ts';
import { OneShotWatch } from './one-shot.ts';

test('the promise has the event, with the path below the chroot', async () => {
  const watch = new OneShotWatch((path) => path.replace('/app', ''));
  watch.onWatchSuspended();
  watch.onWatchRearmed();

  watch.onWatchEvent({ type: 'changed', path: '/app/config', zxid: 7n });

  expect(await watch.changed).toEqual({ type: 'changed', path: '/config', zxid: 7n });
});

test.each([
  ['closed', ClosedError],
  ['auth-failed', AuthFailedError],
  ['removed', NoWatcherError],
] as const)('a watch that ends (%s) rejects, and nobody has to catch it', async (reason, type) => {
  const about = { operation: 'get', path: '/config' };
  const watched = new OneShotWatch((path) => path, about);
  const forgotten = new OneShotWatch((path) => path, about);

  watched.onWatchEnded(reason);
  forgotten.onWatchEnded(reason);

  await expect(watched.changed).rejects.toBeInstanceOf(type);
  await expect(watched.changed).rejects.toMatchObject(about);
});

test('a read with a watch tells the next change, also after a reconnect and on a new session', async () => {
  await using server = await TestServer.start();
  await using writer = await connect(server.connectString);
  await using client = await connect(server.connectString);
  await writer.create('/a', 'one');

  const first = await client.get('/a', { watch: true });
  await writer.set('/a', 'two');
  expect(await first.changed).toMatchObject({ type: 'changed', path: '/a' });

  const second = await client.exists('/a', { watch: true });
  await server.restart();
  await writer.set('/a', 'three');
  expect(await second.changed).toMatchObject({ type: 'changed', path: '/a' });

  const third = await client.children('/a', { watch: true });
  await server.expireSession(client.session?.id ?? 0n);
  await writer.create('/a/b');
  expect(await third.changed).toMatchObject({ type: 'children', path: '/a' });
});

test('a watch whose client is closed rejects', async () => {
  await using server = await TestServer.start();
  const client = await connect(server.connectString);
  const { changed } = await client.exists('/a', { watch: true });

  await client.close();

  await expect(changed).rejects.toBeInstanceOf(ClosedError);
});

test('a watch that is taken off tells nothing, and leaves those of others on the same path', async () => {
  await using server = await TestServer.start();
  await using client = await connect(server.connectString);
  await client.create('/a');
  const kept = await client.get('/a', { watch: true });
  const dropped = await client.get('/a', { watch: true });
  const told: string[] = [];
  void dropped.changed.then(() => told.push('dropped'));

  dropped[Symbol.dispose]();
  await client.set('/a', 'new');
  await kept.changed;
  const again = await client.get('/a', { watch: true });
  await client.set('/a', 'newer');
  await again.changed;

  expect(told).toEqual([]);
  expect(Object.keys(dropped)).toEqual(['data', 'stat', 'changed']);
});
