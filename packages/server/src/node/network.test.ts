import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { ByteStream, StreamEvents } from '@meerkat/core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { SILENT_LOGGER } from '../logger.ts';
import { NODE_CLOCK } from './clock.ts';
import { ConnectionShare } from './descriptors.ts';
import { type Listener, type ListenOptions, listen } from './network.ts';
import { EchoCore } from './testing/echo-core.ts';
import { ClientThreads } from './threads/client-threads.ts';
import { Turn } from './turn.ts';

const OPTIONS = { host: '127.0.0.1', port: 0, backlog: -1, keepAlive: false, traffic: { onBytesReceived() {} } };

let core: EchoCore;
let turn: Turn;
let listener: Listener;
const sockets: Socket[] = [];

/** Who has the sockets. */
type Host = 'the thread of the core' | 'an I/O thread';
const HOSTS: readonly Host[] = ['the thread of the core', 'an I/O thread'];
let host: Host = 'the thread of the core';
const threads: ClientThreads[] = [];

beforeEach(async () => {
  turn = new Turn(NODE_CLOCK, (error) => {
    throw error;
  });
  core = new EchoCore(turn);
  turn.start(core, { startEffects: () => false });
  listener = await listenWith(OPTIONS);
});

function listenWith(options: ListenOptions): Promise<Listener> {
  const onStream = (stream: ByteStream): StreamEvents => core.onStreamOpened(stream);
  if (host === 'the thread of the core') return listen(options, turn, onStream, () => {});
  const own = new ClientThreads(1, {
    turn,
    logger: SILENT_LOGGER,
    clientsMax: options.share?.max ?? Number.POSITIVE_INFINITY,
    onClientsCrowd() {},
    onBytesReceived() {},
  });
  threads.push(own);
  return own.listen(options, { onStream, tls: null });
}

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const stream of core.streams) stream.destroy();
  listener.close();
  turn.stop();
  await Promise.all(threads.splice(0).map((own) => own.stop()));
});

async function dial(port = listener.port, allowHalfOpen = false): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen });
  sockets.push(socket);
  await once(socket, 'connect');
  return socket;
}

describe.each(HOSTS)('with sockets in %s', (where) => {
  beforeAll(() => {
    host = where;
  });

  afterAll(() => {
    host = 'the thread of the core';
  });

  describe('a stream', () => {
    test('names its peer, and what a turn answers leaves at its end', async () => {
      const socket = await dial();
      socket.write('ping');
      const [answer] = await once(socket, 'data');
      expect(String(answer)).toBe('ping');
      const [stream] = core.streams;
      expect(stream?.remote).toEqual({ ip: Uint8Array.of(127, 0, 0, 1), host: '127.0.0.1', port: socket.localPort });
      expect(stream?.queuedBytes).toBe(0);
      expect(core.events).toEqual(['bytes ping']);
    });

    test('a peer that half-closes right after its request still gets the answer', async () => {
      const socket = await dial();
      let answer = '';
      socket.on('data', (chunk) => {
        answer += chunk;
      });
      socket.end('srvr');
      await once(socket, 'close');
      expect(answer).toBe('srvr');
      await core.until('closed closed by peer');
    });

    test('a peer that half-closes gets all of an answer that takes several turns', async () => {
      core.isAnswering = true;
      const socket = await dial(listener.port, true);
      const closed = once(socket, 'close');
      let answer = '';
      socket.on('data', (chunk) => {
        answer += chunk;
      });
      socket.end('wchp');
      await core.until('bytes wchp');
      // What comes later is told later: by then the stream knows of the end.
      for (const word of ['later', 'still later']) {
        (await dial()).write(word);
        await core.until(`bytes ${word}`);
      }
      const [stream] = core.streams;
      stream?.write(Buffer.from(', and its rest'));
      core.isAnswering = false;
      stream?.end();
      await closed;
      expect(answer).toBe('wchp, and its rest');
      await core.until('closed closed by peer');
    });

    test('bytes that the kernel does not take are queued, and told when they have left', async () => {
      const socket = await dial();
      core.isEchoing = false;
      socket.write('begin');
      await core.until('bytes begin');
      const [stream] = core.streams;
      socket.pause();
      stream?.write(new Uint8Array(20_000_000));
      expect(stream?.queuedBytes).toBeGreaterThan(0);
      expect(core.events).toEqual(['bytes begin']);
      socket.resume();
      await core.until('drain');
      expect(stream?.queuedBytes).toBe(0);
    });

    if (where === HOSTS[0]) {
      test('long output leaves at the ends of turns', async () => {
        const socket = await dial();
        core.isEchoing = false;
        socket.write('begin');
        await core.until('bytes begin');
        const [stream] = core.streams;
        stream?.write(new Uint8Array(100_000));
        expect(stream?.queuedBytes).toBe(0);
        stream?.write(new Uint8Array(2_000_000));
        stream?.write(new Uint8Array(5));
        expect(stream?.queuedBytes).toBe(2_000_005);
        await core.until('drain');
        expect(stream?.queuedBytes).toBe(0);
      });
    }

    test('what is written behind bytes that wait leaves in its order, and the end of all is told once', async () => {
      const socket = await dial();
      core.isEchoing = false;
      socket.write('begin');
      await core.until('bytes begin');
      const [stream] = core.streams;
      socket.pause();
      for (const fill of [1, 2, 3]) stream?.write(new Uint8Array(8_000_000).fill(fill));
      setImmediate(() => stream?.write(new Uint8Array(8_000_000).fill(4)));
      let received = 0;
      socket.on('data', (chunk: Buffer) => {
        const fill = 1 + Math.floor(received / 8_000_000);
        const own = chunk.subarray(0, 8_000_000 * fill - received);
        expect(own.equals(Buffer.alloc(own.length, fill))).toBe(true);
        received += chunk.length;
      });
      socket.resume();
      while (received < 32_000_000) await once(socket, 'data');
      await core.until('drain');
      await turn.ended();
      expect(core.events).toEqual(['bytes begin', 'drain']);
      expect(stream?.queuedBytes).toBe(0);
    });

    test('bytes that arrive while it is paused are delivered before later ones', async () => {
      const socket = await dial();
      core.isEchoing = false;
      socket.write('begin');
      await core.until('bytes begin');
      const [stream] = core.streams;
      const numbers = Array.from({ length: 60_000 }, (_, n) => `${n} `);
      const expected = numbers.join('');
      let received = '';
      vi.spyOn(core, 'note').mockImplementation((event) => {
        if (!event.startsWith('bytes ')) return;
        received += event.slice('bytes '.length);
        stream?.pause();
        setImmediate(() => stream?.resume());
        for (const wake of core.waiters.splice(0)) wake();
      });
      for (let i = 0; i < numbers.length; i += 1000) socket.write(numbers.slice(i, i + 1000).join(''));
      while (received.length < expected.length) await new Promise<void>((resolve) => core.waiters.push(resolve));
      expect(received).toBe(expected);
    });

    test('no bytes come while it is paused', async () => {
      const socket = await dial();
      socket.write('first');
      await core.until('bytes first');
      core.streams[0]?.pause();
      socket.write('second');
      const other = await dial();
      other.write('other');
      await core.until('bytes other');
      expect(core.events).not.toContain('bytes second');
      core.streams[0]?.resume();
      await core.until('bytes second');
    });

    test('end lets leave what was written, and takes no more', async () => {
      const socket = await dial();
      core.isEchoing = false;
      socket.write('begin');
      await core.until('bytes begin');
      let received = 0;
      socket.on('data', (chunk) => {
        received += chunk.length;
      });
      core.streams[0]?.write(new Uint8Array(3_000_000));
      core.streams[0]?.end();
      core.streams[0]?.write(new Uint8Array(5));
      socket.write('ignored');
      await once(socket, 'close');
      expect(received).toBe(3_000_000);
      await core.until('closed closed by this server');
      expect(core.events).not.toContain('bytes ignored');
    });

    test('a reset is told once, with its reason', async () => {
      const socket = await dial();
      socket.write('begin');
      await core.until('bytes begin');
      socket.resetAndDestroy();
      await core.until('closed reset by peer');
      expect(core.events.filter((event) => event.startsWith('closed'))).toHaveLength(1);
    });
  });

  describe('a frozen turn', () => {
    function freeze(): void {
      turn.freeze();
      listener.freeze();
    }

    function thaw(): void {
      turn.thaw();
      listener.thaw();
    }

    test('takes connections and bytes, and tells of them in their order once it is thawed', async () => {
      const socket = await dial();
      socket.write('before');
      await core.until('bytes before');
      freeze();
      socket.write(' while');
      const late = await dial();
      late.write('late');
      const leaving = await dial();
      leaving.end('leaving');
      turn.run(() => core.note('from outside'));
      // An echo that would come by itself, from a server beside this one, has come by then.
      await echoElsewhere();
      expect(core.events).toEqual(['bytes before']);
      expect(core.streams).toHaveLength(1);
      thaw();
      await core.until('bytes  while');
      await core.until('bytes late');
      await core.until('bytes leaving');
      await core.until('closed closed by peer');
      expect(core.events).toContain('from outside');
      expect(core.streams).toHaveLength(3);
    });

    test('tells of the end of a connection once it is thawed', async () => {
      const socket = await dial();
      socket.write('begin');
      await core.until('bytes begin');
      freeze();
      socket.resetAndDestroy();
      await echoElsewhere();
      expect(core.events).toEqual(['bytes begin']);
      thaw();
      await core.until('closed reset by peer');
    });

    test('a stream that the core had paused stays so', async () => {
      const socket = await dial();
      socket.write('first');
      await core.until('bytes first');
      core.streams[0]?.pause();
      freeze();
      thaw();
      socket.write('second');
      await echoElsewhere();
      expect(core.events).toEqual(['bytes first']);
      core.streams[0]?.resume();
      await core.until('bytes second');
    });

    /** A round trip on another port, several rounds of the event loop long. */
    async function echoElsewhere(): Promise<void> {
      const server = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
      for (let i = 0; i < 3; i++) {
        socket.write('x');
        await once(socket, 'data');
      }
      socket.destroy();
      server.close();
      await once(server, 'close');
    }
  });

  test('a port in use rejects with the code of the system', async () => {
    const second = listenWith({ ...OPTIONS, port: listener.port });
    await expect(second).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  describe('where the share of a port is used up, a peer makes room for the next', () => {
    let small: Listener;

    beforeEach(async () => {
      small = await listenWith({ ...OPTIONS, share: new ConnectionShare(1) });
    });

    afterEach(() => small.close());

    test('that does not close its end of a connection which the server has ended', async () => {
      const socket = await dial(small.port, true);
      socket.write('begin');
      await core.until('bytes begin');
      core.streams[0]?.end();
      socket.resume();
      await once(socket, 'end');
      await dial(small.port);
      await core.until('closed closed by this server');
      expect(core.streams.map(({ isCrowding }) => isCrowding)).toEqual([false, false]);
    });

    test('that has closed its end, and does not read what it asked for', async () => {
      const socket = await dial(small.port);
      core.isEchoing = false;
      socket.write('begin');
      await core.until('bytes begin');
      socket.pause();
      core.streams[0]?.write(new Uint8Array(20_000_000));
      socket.end();
      await once(socket, 'finish');
      // The first to come after this server knows of the end.
      await vi.waitFor(
        async () => {
          await dial(small.port);
          expect(core.events).toContain('closed closed by peer');
        },
        { timeout: 120_000 },
      );
    });

    test('but not one that is open', async () => {
      const socket = await dial(small.port);
      socket.write('begin');
      await core.until('bytes begin');
      await dial(small.port);
      await expect.poll(() => core.streams).toHaveLength(2);
      expect(core.streams.map(({ isCrowding }) => isCrowding)).toEqual([false, true]);
      socket.write('on');
      await core.until('bytes on');
    });
  });
});
