import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import type { ByteStream, StreamEvents } from '@meerkat/core';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Logger } from '../../logger.ts';
import { NODE_CLOCK } from '../clock.ts';
import { Turn } from '../turn.ts';
import { ClientThreads, ENTRY, threadsMax } from './client-threads.ts';
import type { ThreadedEvents } from './threaded-listener.ts';

const OPTIONS = { host: '127.0.0.1', port: 0, backlog: -1, keepAlive: false };

const sockets: Socket[] = [];
const workers: Worker[] = [];
let threads: ClientThreads | null = null;
let turn: Turn;

/** Records the events of streams, in order. */
class Streams implements ThreadedEvents {
  readonly tls = null;
  readonly open: ByteStream[] = [];
  readonly closed: string[] = [];
  readonly lines: string[] = [];

  onStream(stream: ByteStream): StreamEvents {
    this.open.push(stream);
    return {
      onBytes: (chunk) => stream.write(chunk),
      onDrain: () => {},
      onClosed: (reason) => this.closed.push(reason),
    };
  }
}

function start(count: number, lines: string[] = [], entry: URL = ENTRY): ClientThreads {
  turn = new Turn(NODE_CLOCK, (error) => {
    throw error;
  });
  turn.start(
    { onTurnEnd() {}, nextDeadlineMs: () => Number.POSITIVE_INFINITY, onTick() {} },
    { startEffects: () => false },
  );
  const logger: Logger = { log: (level, text) => level !== 'debug' && lines.push(`${level} ${text}`) };
  threads = new ClientThreads(count, {
    turn,
    logger,
    clientsMax: Number.POSITIVE_INFINITY,
    onClientsCrowd() {},
    onBytesReceived() {},
    makeWorker(data) {
      const worker = new Worker(entry, { workerData: data, execArgv: [] });
      workers.push(worker);
      return worker;
    },
  });
  return threads;
}

async function dial(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  sockets.push(socket);
  await once(socket, 'connect');
  return socket;
}

async function echo(socket: Socket): Promise<void> {
  socket.write('ping');
  expect(String((await once(socket, 'data'))[0])).toBe('ping');
}

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  turn.stop();
  await threads?.stop();
  workers.length = 0;
});

describe('a thread that dies', () => {
  test('takes its connections with it; another one listens in its place, and the log says so', async () => {
    const lines: string[] = [];
    const streams = new Streams();
    const listener = await start(1, lines).listen(OPTIONS, streams);
    const socket = await dial(listener.port);
    await echo(socket);
    const closed = once(socket, 'close');
    await workers[0]!.terminate();
    await closed;
    await expect.poll(() => streams.closed).toEqual(['its I/O thread has ended: exit code 1']);
    expect(lines).toEqual([
      'error I/O thread 0 has ended (exit code 1): its connections are closed, those of other threads are not; another one starts in 100 ms',
    ]);
    const later = await vi.waitFor(() => dial(listener.port), { timeout: 60_000 });
    await echo(later);
    expect(workers).toHaveLength(2);
  });

  test('before it listens does not stall the start: its replacement listens', async () => {
    const streams = new Streams();
    const listening = start(1).listen(OPTIONS, streams);
    await workers[0]!.terminate();
    const listener = await listening;
    await echo(await dial(listener.port));
    expect(workers).toHaveLength(2);
  });

  test('repeatedly before it listens makes the start fail', async () => {
    const listening = start(1, [], new URL('data:text/javascript,throw new Error("broken")')).listen(
      OPTIONS,
      new Streams(),
    );
    await expect(listening).rejects.toThrow('I/O thread 0 has ended 5 times before it listened (broken)');
  });

  test('is followed by one that does not listen where the first one could not', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    const streams = new Streams();
    const started = start(1);
    await expect(started.listen({ ...OPTIONS, port }, streams)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    other.close();
    await once(other, 'close');
    await workers[0]!.terminate();
    await vi.waitFor(() => expect(workers).toHaveLength(2), { timeout: 60_000 });
    // It has processed all earlier messages.
    await started.listen(OPTIONS, streams);
    await expect(dial(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});

// With an older Node.js there is one thread at most.
if (threadsMax() > 1) {
  describe('two threads', () => {
    test('share a port, and connections of both are served', async () => {
      const streams = new Streams();
      const listener = await start(2).listen(OPTIONS, streams);
      for (let i = 0; i < 40; i++) await echo(await dial(listener.port));
      expect(streams.open).toHaveLength(40);
      // Which of them gets a connection is the kernel's choice: 40 for one alone would be one in 10 ** 12.
      const closedBefore = streams.closed.length;
      await workers[0]!.terminate();
      await expect.poll(() => streams.closed.length).toBeGreaterThan(closedBefore);
      expect(streams.closed.length).toBeLessThan(40);
      await echo(await dial(listener.port));
    });

    test('do not take a port that another program has', async () => {
      const other = createServer().listen(0, '127.0.0.1');
      await once(other, 'listening');
      const { port } = other.address() as { port: number };
      await expect(start(2).listen({ ...OPTIONS, port }, new Streams())).rejects.toMatchObject({ code: 'EADDRINUSE' });
      other.close();
    });
  });
}

test('several threads need a Node.js that can share a port', () => {
  expect(['20.19.0', '22.11.0', '22.12.0', '23.0.0', '23.1.0', '24.0.0'].map(threadsMax)).toEqual([
    1,
    1,
    Number.POSITIVE_INFINITY,
    1,
    Number.POSITIVE_INFINITY,
    Number.POSITIVE_INFINITY,
  ]);
});
