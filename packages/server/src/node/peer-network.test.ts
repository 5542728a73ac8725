import { once } from 'node:events';
import { type AddressInfo, createServer, Server } from 'node:net';
import type { ConnectEvents, ListenEvents } from '@meerkat/core';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Deferred } from '../deferred.ts';
import { NODE_CLOCK } from './clock.ts';
import { PeerNetwork } from './peer-network.ts';
import { Turn } from './turn.ts';

let turn: Turn;
let network: PeerNetwork;

beforeEach(() => {
  turn = new Turn(NODE_CLOCK, (error) => {
    throw error;
  });
  const core = { onTurnEnd() {}, onTick() {}, nextDeadlineMs: () => Number.POSITIVE_INFINITY };
  turn.start(core, { startEffects: () => false });
  network = new PeerNetwork(turn, false);
});

afterEach(() => {
  vi.restoreAllMocks();
  network.destroyAll();
  turn.stop();
});

/** Listens and returns the events one after the other. */
function listen(port: number, host = '127.0.0.1'): { next(): Promise<string> } {
  const reported: string[] = [];
  const waiters: (() => void)[] = [];
  const record = (what: string): void => {
    reported.push(what);
    waiters.shift()?.();
  };
  const events: ListenEvents = {
    onListening: () => record('listening'),
    onListenFailed: (reason) => record(`failed: ${reason}`),
    onAccepted() {
      throw new Error('unexpected connection');
    },
  };
  network.listen({ host, port }, events);
  const next = async (): Promise<string> => {
    if (reported.length === 0) await new Promise<void>((resolve) => waiters.push(resolve));
    return reported.shift() ?? '';
  };
  return { next };
}

async function takePort(): Promise<{ port: number; holder: Server }> {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  return { port: (holder.address() as AddressInfo).port, holder };
}

test('what comes before a connection delays it, fails it, and is forgotten when it was cancelled', async () => {
  const { port, holder } = await takePort();
  const deferreds: Deferred<void>[] = [];
  const waiting = new PeerNetwork(turn, false, undefined, null, () => {
    const deferred = new Deferred<void>();
    deferreds.push(deferred);
    return deferred.promise;
  });
  const reported: string[] = [];
  const events: ConnectEvents = {
    onConnected: (stream) => {
      reported.push('connected');
      stream.destroy();
      return { onBytes() {}, onDrain() {}, onClosed() {} };
    },
    onConnectFailed: (reason) => reported.push(reason),
  };
  const to = { host: '127.0.0.1', port };
  const sockets = vi.fn();
  holder.on('connection', sockets);
  waiting.connect(to, events);
  await new Promise(setImmediate);
  expect(sockets).not.toHaveBeenCalled();
  deferreds.at(-1)?.resolve();
  await expect.poll(() => reported).toEqual(['connected']);
  waiting.connect(to, events);
  deferreds.at(-1)?.reject(new Error('no ticket: run kinit'));
  await expect.poll(() => reported).toEqual(['connected', 'no ticket: run kinit']);
  expect(waiting.failureAt(to)).toBe('no ticket: run kinit');
  for (const end of ['resolve', 'reject'] as const) {
    const dial = waiting.connect(to, events);
    dial.cancel();
    if (end === 'resolve') deferreds.at(-1)?.resolve();
    else deferreds.at(-1)?.reject(new Error('too late'));
  }
  await new Promise(setImmediate);
  expect(reported).toHaveLength(2);
  waiting.destroyAll();
  holder.close();
});

test('a port that is taken is told, and the next attempt gets it once it is free', async () => {
  const { port, holder } = await takePort();
  expect(await listen(port).next()).toBe(
    'failed: EADDRINUSE, as another program listens there, or another server with the same myid',
  );
  holder.close();
  await once(holder, 'close');
  expect(await listen(port).next()).toBe('listening');
});

test('an accept that fails ends nothing: the port stays with who has it', async () => {
  const { port, holder } = await takePort();
  holder.close();
  await once(holder, 'close');
  const started = vi.spyOn(Server.prototype, 'listen');
  const listening = listen(port);
  expect(await listening.next()).toBe('listening');
  const [server] = started.mock.contexts as unknown as Server[];
  server?.emit('error', Object.assign(new Error('accept EMFILE'), { code: 'EMFILE' }));
  expect(await listen(port).next()).toContain('failed: EADDRINUSE');
});

test('a socket that listens no more is told, and another one takes its place', async () => {
  const { port, holder } = await takePort();
  holder.close();
  await once(holder, 'close');
  const started = vi.spyOn(Server.prototype, 'listen');
  const listening = listen(port);
  expect(await listening.next()).toBe('listening');
  const [server] = started.mock.contexts as unknown as Server[];
  for (let i = 0; i < 3; i++) server?.emit('error', Object.assign(new Error('accept EINVAL'), { code: 'EINVAL' }));
  expect(await listening.next()).toBe('failed: EINVAL, as the socket listens no more');
  expect(await listen(port).next()).toBe('listening');
});

test('an address of another machine is reported with a hint', async () => {
  // Reserved for documentation (RFC 5737).
  expect(await listen(2888, '192.0.2.1').next()).toContain('EADDRNOTAVAIL, as this machine has no such address: is it');
});

test('why the last attempt to connect has failed is known until one succeeds', async () => {
  const { port, holder } = await takePort();
  const to = { host: '127.0.0.1', port };
  const connect = (host = to.host): Promise<string> =>
    new Promise((resolve) => {
      network.connect(
        { host, port },
        {
          onConnected: (stream) => {
            stream.end();
            resolve('connected');
            return { onBytes() {}, onDrain() {}, onClosed() {} };
          },
          onConnectFailed: resolve,
        },
      );
    });
  expect(network.failureAt(to)).toBeNull();
  holder.close();
  await once(holder, 'close');
  expect(await connect()).toBe('ECONNREFUSED');
  expect(network.failureAt(to)).toBe(`nothing listens at 127.0.0.1:${port}`);
  const again = createServer().listen(port, '127.0.0.1');
  await once(again, 'listening');
  expect(await connect()).toBe('connected');
  expect(network.failureAt(to)).toBeNull();
  again.close();

  network
    .connect(to, { onConnected: () => ({ onBytes() {}, onDrain() {}, onClosed() {} }), onConnectFailed() {} })
    .cancel();
  expect(network.failureAt(to)).toBe(`nothing answers at 127.0.0.1:${port}`);
});

test('what comes over a connection that was dialled is read into the memory that its owner gives', async () => {
  const { port, holder } = await takePort();
  const memory = new Uint8Array(7);
  const received: number[] = [];
  const isThere = new Deferred<void>();
  let end = 0;
  network.connect(
    { host: '127.0.0.1', port },
    {
      onConnected: (stream) => {
        stream.readInto?.(() => (end === memory.length ? new Uint8Array(memory.length) : memory.subarray(end)));
        return {
          onBytes: (chunk) => {
            if (chunk.buffer === memory.buffer) end = chunk.byteOffset + chunk.length;
            received.push(...chunk);
            if (received.length === 20) isThere.resolve();
          },
          onDrain() {},
          onClosed() {},
        };
      },
      onConnectFailed: (reason) => isThere.reject(new Error(reason)),
    },
  );
  const [socket] = await once(holder, 'connection');
  socket.write(Uint8Array.of(1, 2));
  await vi.waitFor(() => expect(received).toEqual([1, 2]));
  const rest = Array.from({ length: 18 }, (_, i) => i + 3);
  socket.write(Uint8Array.from(rest));
  await isThere.promise;
  expect(received).toEqual([1, 2, ...rest]);
  // The first chunk came before there was an owner's memory to read into.
  expect([...memory]).toEqual([3, 4, 5, 6, 7, 8, 9]);
  socket.destroy();
  holder.close();
});
