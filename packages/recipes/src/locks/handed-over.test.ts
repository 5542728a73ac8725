import { connect } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { Mutex } from './mutex.ts';

test('a client that resumes a session is certain of it for its original timeout, whatever it requests', async () => {
  await using server = await TestServer.start();
  await using proxy = await TcpProxy.start({ target: server.port });
  const first = await connect(server.connectString, { sessionTimeoutMs: 600 });
  const session = await first.detach();
  await using client = await connect(proxy.connectString, { session, sessionTimeoutMs: 60_000 });
  const held = await new Mutex(client, '/lock').acquire();

  // A server that starts, or a new leader, knows the timeout with which the session was created.
  await proxy.refuse();
  await proxy.cut();
  await server.restart();
  await using other = await connect(server.connectString, { sessionTimeoutMs: 60_000 });
  await using next = await new Mutex(other, '/lock').acquire();
  expect(next.isHeld).toBe(true);
  expect(held.isHeld).toBe(false);
});
