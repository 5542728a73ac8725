import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import {
  AbortedError,
  type AttemptFailure,
  BadArgumentsError,
  ConnectError,
  type ConnectOptions,
  connect,
  makeNodeTransport,
  type Transport,
} from '@meerkat/client';
import { TcpProxy, TestServer } from '@meerkat/testing';
import { afterAll, assert, beforeAll, describe, expect, test } from 'vitest';
import { QUICK } from './fault-site.ts';
import { errorOf } from './outcome.ts';
import { StateLog } from './state-log.ts';

/** Time for several attempts of at most 100 ms each. */
const BRIEF = { connectTimeoutMs: 350, attemptTimeoutMs: 100, backOff: QUICK } as const;

let server: TestServer;
let frozen: TcpProxy;
const listeners: Server[] = [];
const sockets: Socket[] = [];
beforeAll(async () => {
  server = await TestServer.start();
  frozen = await TcpProxy.start({ target: server.port });
  frozen.freeze();
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  for (const listener of listeners) listener.close();
  await frozen.stop();
  await server.dispose();
});

/** A listener that is not a ZooKeeper server. @returns its port */
async function stranger(onSocket: (socket: Socket) => void): Promise<number> {
  const listener = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.resume();
    onSocket(socket);
  });
  return listen(listener);
}

async function listen(listener: Server): Promise<number> {
  listeners.push(listener);
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  return (listener.address() as AddressInfo).port;
}

/** A port that is no longer listened on. */
async function deadPort(): Promise<number> {
  const listener = createServer();
  const port = await listen(listener);
  await new Promise((resolve) => listener.close(resolve));
  return port;
}

async function connectErrorOf(
  servers: ConnectOptions['servers'],
  options: Partial<ConnectOptions> = {},
): Promise<ConnectError> {
  const error = await errorOf(connect({ servers, ...BRIEF, ...options }));
  assert(error instanceof ConnectError);
  return error;
}

/** Retries with longer timeouts while attempts time out because the machine is busy. */
async function unhurried(
  isHurried: (attempts: ConnectError['attempts']) => boolean,
  attempt: (times: Partial<ConnectOptions>) => Promise<ConnectError>,
): Promise<ConnectError> {
  for (let factor = 1; ; factor *= 4) {
    const { connectTimeoutMs, attemptTimeoutMs } = BRIEF;
    const error = await attempt({
      connectTimeoutMs: connectTimeoutMs * factor,
      attemptTimeoutMs: attemptTimeoutMs * factor,
    });
    if (!isHurried(error.attempts) || factor >= 64) return error;
  }
}

/** The real transport, with name resolution by the test. */
function withNames(lookUp: (host: string) => Promise<readonly string[]>): Transport {
  const real = makeNodeTransport();
  return {
    resolve: lookUp,
    connect: (target, events) => real.connect(target, events),
    probe: (target, word, timeoutMs) => real.probe(target, word, timeoutMs),
  };
}

// Concurrent, because each waits for `connectTimeoutMs`.
describe.concurrent('a failed first connect states the reason', () => {
  const cases: readonly [string, () => Promise<number>, AttemptFailure, Partial<ConnectOptions>][] = [
    ['where nothing listens', deadPort, 'refused', {}],
    ['where a listener says nothing', () => stranger(() => {}), 'timed-out', {}],
    ['of a frozen server', async () => frozen.port, 'timed-out', {}],
    ['of a server that closes at once', () => stranger((socket) => socket.destroy()), 'not-serving', {}],
    [
      'of a server that closes the connection on the first request',
      () => stranger((socket) => socket.once('data', () => socket.end())),
      'not-serving',
      {},
    ],
    ['of a web server', () => listen(createHttpServer()), 'not-zookeeper', {}],
    [
      'of a server that sends a greeting',
      () => stranger((socket) => socket.write('SSH-2.0-test\r\n')),
      'not-zookeeper',
      {},
    ],
    [
      'of a server that answers with an unknown frame',
      () => stranger((socket) => socket.write(Uint8Array.from([0, 0, 0, 4, 1, 2, 3, 4]))),
      'not-zookeeper',
      {},
    ],
    ['of a plain port, asked for TLS', async () => server.port, 'tls', { tls: {} }],
    ['of a silent port, asked for TLS', () => stranger(() => {}), 'timed-out', { tls: {} }],
  ];

  test.each(cases)('%s', async (_title, start, failure, options) => {
    const port = await start();
    const error = await unhurried(
      (attempts) => failure !== 'timed-out' && attempts.some((attempt) => attempt.failure === 'timed-out'),
      (times) => connectErrorOf(`127.0.0.1:${port}`, { ...options, ...times }),
    );
    expect(error).toMatchObject({ code: 'CONNECTFAILED', operation: 'connect', outcome: 'not-applied' });
    expect(error.attempts.length).toBeGreaterThan(0);
    for (const attempt of error.attempts) {
      expect(attempt).toMatchObject({ host: '127.0.0.1', port, address: '127.0.0.1', failure });
      expect(error.message).toContain(attempt.detail);
    }
    expect(error.message).toContain(`127.0.0.1:${port}`);
  });

  test('of an unknown name', async () => {
    const transport = withNames((host) => Promise.reject(new Error(`getaddrinfo ENOTFOUND ${host}`)));
    const error = await connectErrorOf('no-such-host:2181', { transport });
    for (const attempt of error.attempts) {
      expect(attempt).toMatchObject({ host: 'no-such-host', address: null, failure: 'dns' });
    }
    expect(error.message).toContain('getaddrinfo ENOTFOUND no-such-host');
  });

  test('of a name without an address, and of a look-up that never ends', async () => {
    const empty = await connectErrorOf('empty:1', { transport: withNames(async () => []) });
    expect(empty.attempts[0]).toMatchObject({ host: 'empty', port: 1, address: null, failure: 'dns' });
    const endless = await connectErrorOf('endless:2', { transport: withNames(() => new Promise(() => {})) });
    expect(endless.attempts[0]).toMatchObject({ host: 'endless', port: 2, address: null, failure: 'timed-out' });
  });

  test('of every server and address of the list', async () => {
    const silent = await stranger(() => {});
    const closing = await stranger((socket) => socket.destroy());
    const dead = await deadPort();
    const transport = withNames(async (host) => {
      if (host === 'unknown') throw new Error('ENOTFOUND');
      return host === 'two' ? ['127.0.0.1', '127.0.0.2'] : ['127.0.0.1'];
    });
    const servers = [`one:${silent}`, `two:${dead}`, `three:${closing}`, 'unknown:4'];
    const { attempts, message } = await unhurried(
      // There are five addresses, and only the first is silent.
      (made) =>
        new Set(made.map(({ host, address }) => `${host} ${address}`)).size < 5 ||
        made.some(({ host, failure }) => host !== 'one' && failure === 'timed-out'),
      (times) => connectErrorOf(servers, { transport, ...times }),
    );
    const attempted = new Set(attempts.map(({ host, address, failure }) => `${host} ${address} ${failure}`));
    expect([...attempted].sort()).toEqual([
      'one 127.0.0.1 timed-out',
      'three 127.0.0.1 not-serving',
      'two 127.0.0.1 refused',
      'two 127.0.0.2 refused',
      'unknown null dns',
    ]);
    for (const name of [`one:${silent}`, `two:${dead}`, `three:${closing}`, 'unknown:4', '127.0.0.2']) {
      expect(message).toContain(name);
    }
  });

  test('also when the timeout expires during the first attempt', async () => {
    const port = await stranger(() => {});
    const error = await connectErrorOf(`127.0.0.1:${port}`, { connectTimeoutMs: 100, attemptTimeoutMs: 100 });
    expect(error.attempts[0]).toMatchObject({ host: '127.0.0.1', port, failure: 'timed-out' });
    expect(error.message).toContain(`127.0.0.1:${port}`);
  });
});

describe('connect', () => {
  test('uses the next server of the list when one is unreachable', async () => {
    const dead = await deadPort();
    const closing = await stranger((socket) => socket.destroy());
    const servers = [`127.0.0.1:${dead}`, `127.0.0.1:${closing}`, server.connectString];
    for (let i = 0; i < 10; i++) {
      await using client = await connect({ servers, backOff: QUICK });
      expect(client.server?.port).toBe(server.port);
    }
  });

  test('uses the one address of a name that answers', async () => {
    // The server listens on 127.0.0.1 only.
    const addresses = ['127.0.0.2', '127.0.0.1', '127.0.0.3'];
    const transport = withNames(async () => addresses);
    for (let i = 0; i < 10; i++) {
      await using client = await connect(`many:${server.port}`, { transport, backOff: QUICK });
      expect(client.server).toEqual({ host: 'many', port: server.port, address: '127.0.0.1' });
    }
  });

  test('resolves names again at each attempt, and succeeds once they resolve', async () => {
    let lookUps = 0;
    const transport = withNames(async () => {
      lookUps++;
      if (lookUps < 4) throw new Error('EAI_AGAIN');
      return lookUps < 6 ? ['127.0.0.2'] : ['127.0.0.1'];
    });
    await using client = await connect(`late:${server.port}`, { transport, backOff: QUICK });
    expect(lookUps).toBe(6);
    expect(client.state).toBe('connected');
  });

  test('succeeds when the server starts to serve during the attempts', async () => {
    await using proxy = await TcpProxy.start({ target: server.port });
    await proxy.refuse();
    const connecting = connect(proxy.connectString, { backOff: QUICK });
    let refusals = 0;
    const seen = new Promise<void>((resolve) => {
      const timer = setInterval(() => {
        if (++refusals < 20) return;
        clearInterval(timer);
        resolve();
      }, 1);
    });
    await seen;
    await proxy.accept();
    await using client = await connecting;
    expect(client.state).toBe('connected');
  });

  test('is aborted by its signal, at any moment', async () => {
    const silent = await stranger(() => {});
    const reason = new Error('not today');
    for (const signal of [AbortSignal.abort(reason), soon(reason)]) {
      const error = await errorOf(connect(`127.0.0.1:${silent}`, { signal }));
      expect(error).toBeInstanceOf(AbortedError);
      expect(error).toMatchObject({ name: 'AbortError', cause: reason, operation: 'connect' });
    }
  });

  test.each([[''], ['host:0'], ['host:65536'], ['host:port'], ['host/relative/'], [[]], ['[::1']])(
    'refuses the servers %j before it tries any',
    async (servers) => {
      expect(await errorOf(connect({ servers }))).toBeInstanceOf(BadArgumentsError);
    },
  );

  test('leaves nothing behind when it has failed', async () => {
    const open = new Set<Socket>();
    let closed = Promise.resolve();
    const silent = await stranger((socket) => {
      open.add(socket);
      const before = closed;
      closed = new Promise((resolve) => socket.once('close', () => resolve(before)));
    });
    await connectErrorOf(`127.0.0.1:${silent}`);
    // The last attempt is closed too.
    await closed;
    expect(open.size).toBeGreaterThan(1);
  });
});

describe('a client whose server is down', () => {
  test('resolves its name again, and finds the server at its new address', async () => {
    await using one = await TcpProxy.start({ target: server.port });
    let lookUps: 'good' | 'failing' | 'moved' = 'good';
    // One port: nothing listens at the second address.
    const transport = withNames(async () => {
      if (lookUps === 'failing') throw new Error('EAI_AGAIN');
      return lookUps === 'good' ? ['127.0.0.1'] : ['127.0.0.2', '127.0.0.1'];
    });
    await using client = await connect(`name:${one.port}`, { transport, backOff: QUICK });
    const states = new StateLog(client);
    lookUps = 'failing';
    await one.cut();
    await states.until('suspended');
    const waiting = client.get('/');
    lookUps = 'moved';
    expect(await states.until('connected')).toMatchObject({ sameSession: true });
    await waiting;
  });
});

function soon(reason: Error): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(reason), 20);
  return controller.signal;
}
