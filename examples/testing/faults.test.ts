import { type Client, connect, text } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';
import { expect, test } from 'vitest';

// #region lost-reply
/** The code under test: counts a visit, and must not count it twice. */
async function countVisit(client: Client, onCounting = () => {}): Promise<number> {
  const increment = (count: string): string => {
    onCounting();
    return `${Number(count) + 1}`;
  };
  const { data } = await client.update('/visits', increment, { codec: text });
  return Number(data);
}

test('a visit whose reply is lost is not counted twice: the outcome is reported as unknown', async () => {
  await using server = await TestServer.start();
  await using proxy = await TcpProxy.start({ target: server.port });
  await using client = await connect(proxy.connectString);
  await client.create('/visits', '0');

  // The next byte that the server sends after the read is the first one of its reply to the write.
  const loseReply = () => void proxy.connections[0]?.cutAfter({ direction: 'toClient', bytes: 0 });
  await expect(countVisit(client, loseReply)).rejects.toMatchObject({ code: 'CONNECTIONLOSS', outcome: 'unknown' });
  expect((await client.get('/visits', { codec: text })).data).toBe('1');
});
// #endregion

test('a visit is counted although the connection is gone', async () => {
  await using server = await TestServer.start();
  await using proxy = await TcpProxy.start({ target: server.port });
  await using client = await connect(proxy.connectString);
  await client.create('/visits', '0');
  await proxy.cut();
  expect(await countVisit(client)).toBe(1);
});

test('a client outlives a restart of the server with the same session', async () => {
  await using server = await TestServer.start();
  await using client = await connect(server.connectString);
  const changes = client.states();
  await server.restart();
  expect((await changes.next()).value).toMatchObject({ state: 'suspended' });
  expect((await changes.next()).value).toMatchObject({ state: 'connected', sameSession: true });
});

test('a server that is frozen for longer than the session timeout ends what depends on the session', async () => {
  await using server = await TestServer.start();
  await using client = await connect(server.connectString, { sessionTimeoutMs: 300 });
  const { lostSignal } = client;
  server.pause();
  await new Promise((resolve) => lostSignal.addEventListener('abort', resolve, { once: true }));
  expect(client.state).toBe('lost');
  await expect(client.get('/')).rejects.toMatchObject({ code: 'SESSIONLOST', outcome: 'not-applied' });
});
