import { type Client, connect } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';
import { describe, expect, test } from 'vitest';

/*
 * The table of docs/client/outcomes.md, row by row: the outcome of a read and of a write.
 */

interface Site extends AsyncDisposable {
  readonly server: TestServer;
  readonly proxy: TcpProxy;
  readonly client: Client;
}

async function makeSite(sessionTimeoutMs = 10_000): Promise<Site> {
  const server = await TestServer.start();
  const proxy = await TcpProxy.start({ target: server.port });
  const client = await connect(proxy.connectString, { sessionTimeoutMs });
  await client.create('/a');
  return {
    server,
    proxy,
    client,
    async [Symbol.asyncDispose]() {
      await client.close();
      await proxy.stop();
      await server.dispose();
    },
  };
}

/** Breaks the connection and refuses new ones. */
async function suspend({ proxy, client }: Site): Promise<void> {
  const changes = client.states();
  await proxy.refuse();
  await proxy.cut();
  expect((await changes.next()).value?.state).toBe('suspended');
}

type Call = (
  client: Client,
  options?: { readonly signal?: AbortSignal; readonly timeoutMs?: number },
) => Promise<unknown>;

const read: Call = (client, options) => client.get('/a', options);
const write: Call = (client, options) => client.set('/a', 'x', options);

describe('the table of outcomes', () => {
  test('no connection when it is called: waits, goes out on the next connection', async () => {
    await using site = await makeSite();
    await suspend(site);
    const calls = [read(site.client), write(site.client)];
    await site.proxy.accept();
    await Promise.all(calls);
  });

  test('the connection breaks after the request was sent: a read is sent again, a write rejects', async () => {
    await using site = await makeSite();
    const { client, proxy } = site;
    void proxy.connections[0]?.cutAfter({ direction: 'toClient', bytes: 0 });
    await read(client);
    void proxy.connections[0]?.cutAfter({ direction: 'toClient', bytes: 0 });
    await expect(write(client)).rejects.toMatchObject({ code: 'CONNECTIONLOSS', outcome: 'unknown' });
  });

  test('five connections break under a read', async () => {
    await using site = await makeSite();
    const { client, proxy } = site;
    // A ConnectResponse has 41 bytes. A reset might overtake it.
    const afterHandshake = { direction: 'toClient', bytes: 41 } as const;
    void proxy.connections[0]?.cutAfter({ direction: 'toClient', bytes: 0 });
    const broken = (async () => {
      for (let i = 1; i < 5; i++) await proxy.cutAfter({ ...afterHandshake, how: 'end' });
    })();
    await expect(read(client)).rejects.toMatchObject({ code: 'CONNECTIONLOSS', outcome: 'not-applied' });
    await broken;
  });

  test('the session is lost while it waits', async () => {
    await using site = await makeSite(1000);
    await suspend(site);
    const lost = { code: 'SESSIONLOST', outcome: 'not-applied' };
    await Promise.all([read, write].map((call) => expect(call(site.client)).rejects.toMatchObject(lost)));
    expect(site.client.state).toBe('lost');
    await Promise.all([read, write].map((call) => expect(call(site.client)).rejects.toMatchObject(lost)));
  });

  test('a server says that the session has expired while it waits', async () => {
    await using site = await makeSite();
    await suspend(site);
    const calls = [read, write].map((call) =>
      expect(call(site.client)).rejects.toMatchObject({ code: 'SESSIONEXPIRED', outcome: 'not-applied' }),
    );
    await site.server.expireSession(site.client.session?.id ?? 0n);
    await site.proxy.accept();
    await Promise.all(calls);
  });

  describe.each([
    ['timeoutMs passes', 'TIMEOUT', () => ({ timeoutMs: 20 })],
    ['its signal is aborted', 'ABORTED', () => ({ signal: AbortSignal.timeout(20) })],
  ] as const)('%s', (_when, code, makeOptions) => {
    test('and it was never sent', async () => {
      await using site = await makeSite();
      await suspend(site);
      for (const call of [read, write]) {
        await expect(call(site.client, makeOptions())).rejects.toMatchObject({ code, outcome: 'not-applied' });
      }
    });

    test('and it was sent', async () => {
      await using site = await makeSite();
      site.server.pause();
      await expect(read(site.client, makeOptions())).rejects.toMatchObject({ code, outcome: 'not-applied' });
      await expect(write(site.client, makeOptions())).rejects.toMatchObject({ code, outcome: 'unknown' });
      site.server.resume();
    });
  });

  test('close is called: what is in flight is answered first, what waits for a connection is not sent', async () => {
    await using connected = await makeSite();
    const answered = [read(connected.client), write(connected.client)];
    await connected.client.close();
    await Promise.all(answered);

    await using suspended = await makeSite();
    await suspend(suspended);
    const refused = [read, write].map((call) =>
      expect(call(suspended.client)).rejects.toMatchObject({ code: 'CLOSED', outcome: 'not-applied' }),
    );
    await suspended.client.close();
    await Promise.all(refused);
  });

  test('the connection breaks while closing', async () => {
    await using site = await makeSite();
    site.server.pause();
    const calls = [
      expect(read(site.client)).rejects.toMatchObject({ code: 'CLOSED', outcome: 'not-applied' }),
      expect(write(site.client)).rejects.toMatchObject({ code: 'CLOSED', outcome: 'unknown' }),
    ];
    const closed = site.client.close();
    // Requests are sent at the end of this event loop turn.
    await new Promise((resolve) => setImmediate(resolve));
    await site.proxy.cut();
    await Promise.all([...calls, closed]);
    site.server.resume();
  });
});
