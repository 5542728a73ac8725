import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { askByTcp, askByUdp, type KdcAddress, parseKdc } from './kdc-transport.ts';

test.each([
  ['kdc', 'kdc', 88],
  ['kdc:750', 'kdc', 750],
  ['127.0.0.1:88', '127.0.0.1', 88],
  ['[::1]:750', '::1', 750],
  ['::1', '::1', 88],
])('the center %j is at %s, port %i', (text, host, port) => {
  expect(parseKdc(text)).toEqual({ host, port });
});

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
async function sendSlowly(socket: Socket, bytes: Uint8Array): Promise<void> {
  socket.setNoDelay();
  for (const byte of bytes) {
    socket.write(Buffer.of(byte));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test('an answer may arrive byte by byte', async () => {
  const kdc = await listen((socket) => sendSlowly(socket, Buffer.from('0000000361626364', 'hex')));
  expect(Buffer.from(await askByTcp(kdc, Buffer.from('?'))).toString()).toBe('abc');
});

test('an answer that announces more than a megabyte is refused', async () => {
  const kdc = await listen((socket) => sendSlowly(socket, Buffer.from('00100001', 'hex')));
  await expect(askByTcp(kdc, Buffer.from('?'))).rejects.toThrow('it announces an answer of 1048577 bytes');
});

test('a connection that ends early is a failure', async () => {
  const kdc = await listen(async (socket) => void socket.end(Buffer.from('00000003', 'hex')));
  await expect(askByTcp(kdc, Buffer.from('?'))).rejects.toThrow('closed the connection without an answer');
});

test('a port where nothing listens is a failure', async () => {
  for (const ask of [askByTcp, askByUdp]) {
    await expect(ask({ host: '127.0.0.1', port: 1 }, Buffer.from('?'))).rejects.toThrow(/ECONNREFUSED/);
  }
});

test('a center whose name cannot be resolved fails the request, not the process', async () => {
  await expect(askByUdp({ host: 'no such host', port: 1 }, Buffer.from('?'))).rejects.toThrow(/ENOTFOUND|EAI_/);
});
