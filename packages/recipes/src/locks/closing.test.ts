import { connect } from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { Mutex } from './mutex.ts';

test('a lock is not held while its client is being closed: another client may have acquired it', async () => {
  await using server = await TestServer.start();
  await using proxy = await TcpProxy.start({ target: server.port });
  await using other = await connect(server.connectString, { sessionTimeoutMs: 60_000 });
  const client = await connect(proxy.connectString, { sessionTimeoutMs: 60_000 });
  const held = await new Mutex(client, '/lock').acquire();

  // The service ends the session, and its reply is still in flight.
  proxy.freeze('toClient');
  const closed = client.close();
  expect(held.isHeld).toBe(false);
  expect(held.signal.aborted).toBe(true);
  await using next = await new Mutex(other, '/lock').acquire();
  expect(next.isHeld).toBe(true);
  expect(held.isHeld).toBe(false);

  proxy.thaw();
  await closed;
});
