import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { TcpProxy, TestServer } from '@meerkat/testing';
import { expect, test } from 'vitest';

/** The code under test: asks a server whether it is well, and gives up after a while. */
async function isWell(port: number, timeoutMs: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1', signal: AbortSignal.timeout(timeoutMs) });
  try {
    await once(socket, 'connect');
    socket.write('ruok');
    return (await text(socket)) === 'imok';
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

test('a server that runs is well, one that is stopped is not', async () => {
  await using server = await TestServer.start();
  expect(await isWell(server.port, 10_000)).toBe(true);
  await server.stop();
  expect(await isWell(server.port, 10_000)).toBe(false);
  await server.restart();
  expect(await isWell(server.port, 10_000)).toBe(true);
});

test('a server that hangs is not well', async () => {
  await using server = await TestServer.start();
  server.pause();
  expect(await isWell(server.port, 50)).toBe(false);
});

test('a connection that breaks in the middle of the answer is not well', async () => {
  await using server = await TestServer.start();
  await using proxy = await TcpProxy.start({ target: server.port });
  const cut = proxy.cutAfter({ direction: 'toClient', bytes: 2 });
  expect(await isWell(proxy.port, 10_000)).toBe(false);
  await cut;
});
