// #region test
import { type Client, connect } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';
import { expect, test } from 'vitest';

/** The code under test: makes this process a member, as long as its session lives. */
async function join(client: Client, name: string, address: string): Promise<void> {
  await client.createParents(`/members/${name}`, address, { mode: 'ephemeral' });
}

// #endregion
test('a member is listed', async () => {
  await using server = await TestServer.start();
  await using client = await connect(server.connectString);
  await join(client, 'ann', '10.0.0.7:8080');
  expect((await client.children('/members')).children).toEqual(['ann']);
});

// #region test
test('a member whose session has expired is gone', async () => {
  await using server = await TestServer.start();
  await using client = await connect(server.connectString);
  await using observer = await connect(server.connectString);
  await join(client, 'ann', '10.0.0.7:8080');

  const { changed } = await observer.exists('/members/ann', { watch: true });
  await server.expireSession(client.session?.id ?? 0n);
  expect((await changed).type).toBe('deleted');
});
// #endregion
