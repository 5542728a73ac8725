import { connect, text } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';
import { expect, test } from 'vitest';

// #region lost-reply
test('an update whose reply is lost is not repeated: its outcome is unknown', async () => {
  await using server = await TestServer.start();
  await using proxy = await TcpProxy.start({ target: server.port });
  await using client = await connect(proxy.connectString);
  await client.create('/visits', '0');

  const increment = (count: string): string => {
    // The next byte that the server sends is the first one of its reply to the write.
    void proxy.connections[0]?.cutAfter({ direction: 'toClient', bytes: 0 });
    return `${Number(count) + 1}`;
  };
  const visit = client.update('/visits', increment, { codec: text });
  await expect(visit).rejects.toMatchObject({ code: 'CONNECTIONLOSS', outcome: 'unknown' });
  expect((await client.get('/visits', { codec: text })).data).toBe('1');
});
// #endregion

test('an update is carried out although the connection is gone', async () => {
  await using server = await TestServer.start();
  await using proxy = await TcpProxy.start({ target: server.port });
  await using client = await connect(proxy.connectString);
  await client.create('/visits', '0');
  await proxy.cut();
  const { data } = await client.update('/visits', (count) => `${Number(count) + 1}`, { codec: text });
  expect(data).toBe('1');
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
