import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { askByTcp, type KdcAddress } from './kdc-transport.ts';

/** A server that reads one request, and passes its connection to `answer`. */
async function listen(answer: (socket: Socket) => Promise<void>): Promise<KdcAddress> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => void answer(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

/** Sends every byte in a segment of its own. */
async function dribble(socket: Socket, bytes: Uint8Array): Promise<void> {
  socket.setNoDelay();
  for (const byte of bytes) {
    socket.write(Buffer.of(byte));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test('an answer may arrive byte by byte', async () => {
  const kdc = await listen((socket) => dribble(socket, Buffer.from('0000000361626364', 'hex')));
  expect(Buffer.from(await askByTcp(kdc, Buffer.from('?'))).toString()).toBe('abc');
});

test('an answer that announces more than a megabyte is refused', async () => {
  const kdc = await listen((socket) => dribble(socket, Buffer.from('00100001', 'hex')));
  await expect(askByTcp(kdc, Buffer.from('?'))).rejects.toThrow('it announces an answer of 1048577 bytes');
});

test('a connection that ends early is a failure', async () => {
  const kdc = await listen(async (socket) => void socket.end(Buffer.from('00000003', 'hex')));
  await expect(askByTcp(kdc, Buffer.from('?'))).rejects.toThrow('closed the connection without an answer');
});
