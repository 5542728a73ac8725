import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeConfiguration } from './config/options.ts';
import { TextLogger } from './logger.ts';
import type { RunningServer } from './running-server.ts';
import { startServer } from './server.ts';

/** What hostile and broken peers do to a server on real sockets: nothing that anybody else notices. */

let directory = '';
let server: RunningServer;
const log: string[] = [];
const sockets: Socket[] = [];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-hostile-'));
  log.length = 0;
  const core = { connectionsPerHostMax: 0, tickTimeMs: 500, sessionlessTimeoutMs: 2000 };
  const configuration = makeConfiguration(directory, { core, server: { clientHost: '127.0.0.1', clientPort: 0 } });
  server = await startServer(configuration, { logger: new TextLogger('info', (line) => log.push(line)) });
});

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.stop();
  rmSync(directory, { recursive: true, force: true });
});

async function open(): Promise<Socket> {
  const socket = connect(server.address.port, server.address.host);
  socket.on('error', () => {}); // being cut off is the point
  sockets.push(socket);
  await once(socket, 'connect');
  return socket;
}

/** A connection with a session that asks one thing at a time; bytes are put together by hand. */
class Bystander {
  readonly #socket: Socket;
  #xid = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  static async join(): Promise<Bystander> {
    const socket = await open();
    const request = Buffer.alloc(49);
    request.writeInt32BE(45, 0);
    request.writeInt32BE(20_000, 16);
    request.writeInt32BE(16, 28);
    socket.write(request);
    await readFrame(socket);
    return new Bystander(socket);
  }

  get socket(): Socket {
    return this.#socket;
  }

  /** @returns the error code of the reply */
  async ask(op: number, record: Buffer): Promise<number> {
    const xid = this.send(op, record);
    const reply = await readFrame(this.#socket);
    expect(reply.readInt32BE(0)).toBe(xid);
    return reply.readInt32BE(12);
  }

  send(op: number, record: Buffer): number {
    const header = Buffer.alloc(12);
    header.writeInt32BE(8 + record.length, 0);
    header.writeInt32BE(++this.#xid, 4);
    header.writeInt32BE(op, 8);
    this.#socket.write(Buffer.concat([header, record]));
    return this.#xid;
  }
}

async function readFrame(socket: Socket): Promise<Buffer> {
  const length = (await readBytes(socket, 4)).readInt32BE(0);
  return readBytes(socket, length);
}

async function readBytes(socket: Socket, count: number): Promise<Buffer> {
  for (;;) {
    const bytes = socket.read(count) as Buffer | null;
    if (bytes !== null) return bytes;
    await once(socket, 'readable');
  }
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

const GET_DATA = 4;
const CREATE = 1;
const getData = (path: string): Buffer => Buffer.concat([text(path), Buffer.from([0])]);
/** With the open ACL and flags 0. */
const create = (path: string, bytes: number): Buffer =>
  Buffer.concat([
    text(path),
    text('x'.repeat(bytes)),
    Buffer.from([0, 0, 0, 1, 0, 0, 0, 31]),
    text('world'),
    text('anyone'),
    Buffer.alloc(4),
  ]);

test('a thousand idle connections with partial frames do not disturb other clients and are dropped', async () => {
  const bystander = await Bystander.join();
  const beginnings = [Buffer.alloc(0), Buffer.from([0]), Buffer.from('0000002d0000', 'hex'), Buffer.from('stm')];
  const peers = await Promise.all(
    Array.from({ length: 1000 }, async (_, i) => {
      const socket = await open();
      socket.write(beginnings[i % beginnings.length]!);
      socket.resume();
      return once(socket, 'close');
    }),
  );
  expect(await bystander.ask(CREATE, create('/a', 10))).toBe(0);
  await Promise.all(peers);
  expect(server.view.connectionCount).toBe(1);
  expect(await bystander.ask(GET_DATA, getData('/a'))).toBe(0);
  expect(log.some((line) => line.includes('it sent no connect request within 2000 ms'))).toBe(true);
});

test('a client that reads nothing does not fill the memory of the server', async () => {
  const bystander = await Bystander.join();
  expect(await bystander.ask(CREATE, create('/big', 1_000_000))).toBe(0);
  const before = process.memoryUsage().rss;
  const deaf = await Promise.all(Array.from({ length: 5 }, () => Bystander.join()));
  for (const { socket } of deaf) socket.pause();
  for (let i = 0; i < 200; i++) for (const each of deaf) each.send(GET_DATA, getData('/big'));
  for (let i = 0; i < 50; i++) expect(await bystander.ask(GET_DATA, getData('/'))).toBe(0);
  // A thousand replies of a megabyte were asked for; each of the five may hold a few of them.
  expect(process.memoryUsage().rss - before).toBeLessThan(300_000_000);
});

test('random and damaged bytes close the connection they came from, if any', async () => {
  const bystander = await Bystander.join();
  let number = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ minLength: 1, maxLength: 200 }),
      fc.constantFrom(CREATE, 2, 5, 7, 14, 22, 100, 101, 102, 105, 106),
      fc.boolean(),
      async (bytes, op, hasSession) => {
        if (hasSession) {
          const peer = await Bystander.join();
          peer.send(op, Buffer.from(bytes));
          peer.socket.destroy();
        } else {
          const socket = await open();
          socket.write(bytes);
          socket.destroy();
        }
        expect(await bystander.ask(CREATE, create(`/n${number++}`, 1))).toBe(0);
      },
    ),
    { numRuns: 150 },
  );
});

test('a second connect request is an unknown operation and ends the connection', async () => {
  const peer = await Bystander.join();
  const request = Buffer.alloc(49);
  request.writeInt32BE(45, 0);
  peer.socket.write(request);
  const reply = await readFrame(peer.socket);
  expect(reply.readInt32BE(12)).toBe(-6);
  peer.socket.resume();
  await once(peer.socket, 'close');
});
