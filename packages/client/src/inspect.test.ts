import { inspect } from 'node:util';
import { TestServer } from '@meerkat/testing';
import { expect, it } from 'vitest';
import type { Client } from './client.ts';
import { connect } from './connect.ts';

it('shows a client with its state, server and session, and never the password', async () => {
  await using server = await TestServer.start();
  await using client = await connect(server.connectString);
  const id = `0x${client.session?.id.toString(16)}`;
  expect(inspect(client, { breakLength: Number.POSITIVE_INFINITY })).toBe(
    `Client { state: 'connected', server: '${server.connectString}', ` +
      `session: SessionInfo { id: ${id}, timeoutMs: 10000, password: <hidden> }, chroot: '' }`,
  );
  expect(JSON.stringify(client.session)).toBe(`{"id":"${id}","timeoutMs":10000}`);
});

it('turns a Stat into JSON', async () => {
  await using server = await TestServer.start();
  await using client = await connect(server.connectString);
  const { stat } = await client.create('/a', 'four', { mode: 'ephemeral' });
  const shown: unknown = JSON.parse(JSON.stringify(stat));
  expect(shown).toEqual({
    czxid: '0x2',
    mzxid: '0x2',
    pzxid: '0x2',
    ephemeralOwner: `0x${client.session?.id.toString(16)}`,
    ctime: stat?.ctime,
    mtime: stat?.mtime,
    version: 0,
    cversion: 0,
    aversion: 0,
    dataLength: 4,
    numChildren: 0,
  });
});

it.each<[string, (client: Client) => Promise<unknown>]>([
  ['get', (client) => client.get('/missing')],
  ['a linearizable get', (client) => client.get('/missing', { read: 'linearizable' })],
  ['set', (client) => client.set('/missing', '')],
  ['update', (client) => client.update('/missing', () => '')],
  ['a transaction', (client) => client.transaction().check('/missing').commit()],
])('the error of %s has the frames of its caller', async (_name, fail) => {
  await using server = await TestServer.start();
  await using client = await connect(server.connectString);
  async function readConfiguration(): Promise<void> {
    await fail(client);
  }
  const error = await readConfiguration().then(
    () => expect.fail('it succeeded'),
    (reason: Error) => reason,
  );
  expect(error.stack).toMatch(/at (async )?readConfiguration/);
});
