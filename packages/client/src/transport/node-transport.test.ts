import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { env } from 'node:process';
import { createServer as createTlsServer, type TlsOptions as TlsServerOptions } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { AttemptFailure, Target } from '../machine/ports.ts';
import { CertificateAuthority, hasOpenssl, type KeyPair } from '../testing/certificates.ts';
import { makeNodeTransport } from './node-transport.ts';
import type { Transport, TransportStream } from './transport.ts';

const cleanups: (() => void)[] = [];

afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

describe('a stream over a socket', () => {
  test('carries bytes both ways, in order', async () => {
    const target = await listen((socket) => void socket.pipe(socket));
    const stream = new Stream(makeNodeTransport(), target);
    await stream.opened;

    expect(stream.write('first ')).toBe(true);
    expect(stream.write('second')).toBe(true);

    await expect.poll(() => stream.received).toBe('first second');
  });

  test('delivers plain Uint8Arrays', async () => {
    const target = await listen((socket) => void socket.write('x'));
    const kinds: unknown[] = [];
    const transport = makeNodeTransport();
    const stream = transport.connect(target, {
      onOpen() {},
      onBytes: (chunk) => kinds.push(chunk.constructor),
      onClosed() {},
    });
    cleanups.push(() => stream.destroy());

    await expect.poll(() => kinds).toEqual([Uint8Array]);
  });

  test('reports that memory is still in use while the other side does not read', async () => {
    const target = await listen((socket) => void socket.pause());
    const stream = new Stream(makeNodeTransport(), target);
    await stream.opened;

    expect(stream.writeBytes(new Uint8Array(64 * 1024 * 1024))).toBe(false);
  });

  test('has sent what was in memory that it reports as free', async () => {
    const [accepted, accept] = promise<Socket>();
    const target = await listen((socket) => accept(socket.pause()));
    const stream = new Stream(makeNodeTransport(), target);
    await stream.opened;
    const piece = new Uint8Array(1024);
    let pieces = 0;
    // Until the kernel takes no more; the memory of the last one is left as it is.
    do piece.fill(pieces++ % 251);
    while (stream.writeBytes(piece));

    const received: Buffer[] = [];
    const server = await accepted;
    server.on('data', (chunk: Buffer) => received.push(chunk)).resume();
    await expect.poll(() => received.reduce((sum, { length }) => sum + length, 0)).toBe(pieces * piece.length);
    const all = Buffer.concat(received);
    const wrong = Array.from({ length: pieces }, (_, i) => i).filter((i) =>
      all.subarray(i * piece.length, (i + 1) * piece.length).some((byte) => byte !== i % 251),
    );
    expect(wrong).toEqual([]);
  });

  test('reports a clean end although unread bytes are queued', async () => {
    const target = await listen((socket) => {
      socket.pause();
      socket.write('bye', () => socket.end());
    }, true);
    const stream = new Stream(makeNodeTransport(), target);
    await stream.opened;
    stream.writeBytes(new Uint8Array(64 * 1024 * 1024));

    expect(await stream.closed).toEqual([null, 'the server closed the connection']);
    expect(stream.received).toBe('bye');
  });

  test('reports a reset', async () => {
    const target = await listen((socket) => void socket.once('data', () => socket.resetAndDestroy()));
    const stream = new Stream(makeNodeTransport(), target);
    await stream.opened;
    stream.write('x');

    expect(await stream.closed).toEqual(['unreachable', 'read ECONNRESET']);
    expect(stream.write('into the void')).toBe(true);
  });

  test('reports a refused connection', async () => {
    const stream = new Stream(makeNodeTransport(), await deadTarget());

    const [failure, detail] = await stream.closed;
    expect(failure).toBe('refused');
    expect(detail).toContain('ECONNREFUSED');
    expect(stream.events).toEqual(['closed']);
  });

  test('reports nothing once it is destroyed, whether open or not', async () => {
    const [arrived, arrive] = promise();
    const target = await listen((socket) => {
      socket.write('too late');
      socket.on('close', () => arrive());
    });
    const refused = new Stream(makeNodeTransport(), await deadTarget());
    refused.destroy();
    const open = new Stream(makeNodeTransport(), target);
    await open.opened;
    open.destroy();

    await arrived;
    // Events of the earlier ones would have been reported before this later connection opens.
    const later = new Stream(makeNodeTransport(), target);
    await expect.poll(() => later.received).toBe('too late');
    expect(refused.events).toEqual([]);
    expect(open.events).toEqual(['open']);
  });
});

describe('looking a host up', () => {
  test('returns addresses unchanged', async () => {
    const transport = makeNodeTransport();
    expect(await transport.resolve('127.0.0.1')).toEqual(['127.0.0.1']);
    expect(await transport.resolve('::1')).toEqual(['::1']);
  });

  test('returns each address of a name once', async () => {
    const addresses = await makeNodeTransport().resolve('localhost');
    expect(addresses.length).toBeGreaterThan(0);
    expect(new Set(addresses).size).toBe(addresses.length);
    for (const address of addresses) expect(['127.0.0.1', '::1']).toContain(address);
  });

  test("rejects with the system's error", async () => {
    // The domain "invalid" has no names (RFC 2606 §2).
    await expect(makeNodeTransport().resolve('nowhere.invalid')).rejects.toThrow(/getaddrinfo \w+ nowhere\.invalid/);
  });
});

describe('a four-letter word', () => {
  test('receives the complete answer', async () => {
    const target = await listen((socket) => void socket.once('data', (word) => socket.end(`${word}? rw`)));
    expect(await makeNodeTransport().probe(target, 'isro', 60_000)).toBe('isro? rw');
  });

  test('rejects when the server cannot be reached, or stays silent', async () => {
    const transport = makeNodeTransport();
    await expect(transport.probe(await deadTarget(), 'isro', 60_000)).rejects.toThrow('ECONNREFUSED');
    const silent = await listen(() => {});
    await expect(transport.probe(silent, 'isro', 50)).rejects.toThrow('isro was not answered within 50 ms');
  });
});

// In CI nothing is skipped: a missing program is a failure there.
const canIssue = env['CI'] === 'true' || hasOpenssl();

describe.skipIf(!canIssue)('TLS (with certificates of openssl)', () => {
  let authority: CertificateAuthority;
  let forLoopback: KeyPair;
  let forOthers: KeyPair;
  let ofClient: KeyPair;
  let ca: string;
  beforeAll(() => {
    authority = new CertificateAuthority();
    forLoopback = authority.issue('server', { subjectAltName: 'IP:127.0.0.1,DNS:localhost' });
    forOthers = authority.issue('other-server', { subjectAltName: 'DNS:zk.example' });
    ofClient = authority.issue('client');
    ca = authority.cert;
  });
  afterAll(() => authority?.[Symbol.dispose]());

  test('opens after the handshake and carries bytes', async () => {
    const target = await listenTls(forLoopback, (socket) => void socket.pipe(socket));
    for (const host of ['127.0.0.1', 'localhost']) {
      const stream = new Stream(makeNodeTransport({ tls: { ca } }), { ...target, host });
      await stream.opened;
      stream.write('secret');
      await expect.poll(() => stream.received).toBe('secret');
      expect(stream.events).toEqual(['open']);
    }
  });

  test('carries more data than fits into one buffer', async () => {
    const target = await listenTls(forLoopback, (socket) => void socket.pipe(socket));
    const text = Array.from({ length: 200_000 }, (_, i) => `${i},`).join('');
    const stream = new Stream(makeNodeTransport({ tls: { ca } }), target);
    await stream.opened;
    stream.write(text);
    await expect.poll(() => stream.received.length).toBe(text.length);
    expect(stream.received === text).toBe(true);
  });

  test('reports the end of the server', async () => {
    const target = await listenTls(forLoopback, (socket) => void socket.once('data', () => socket.end('bye')));
    const stream = new Stream(makeNodeTransport({ tls: { ca } }), target);
    await stream.opened;
    stream.write('x');

    expect(await stream.closed).toEqual([null, 'the server closed the connection']);
    expect(stream.received).toBe('bye');
  });

  test('asks the server for the name in the connect string', async () => {
    const target = await listenTls(forOthers, () => {});
    const wrong = new Stream(makeNodeTransport({ tls: { ca } }), target);
    const right = new Stream(makeNodeTransport({ tls: { ca } }), { ...target, host: 'zk.example' });
    const named = new Stream(makeNodeTransport({ tls: { ca, servername: 'zk.example' } }), target);

    const [failure, detail] = await wrong.closed;
    expect(failure).toBe('tls');
    expect(detail).toContain("IP: 127.0.0.1 is not in the cert's list");
    await Promise.all([right.opened, named.opened]);
  });

  test('refuses a server without a trusted certificate', async () => {
    const stream = new Stream(makeNodeTransport({ tls: {} }), await listenTls(forLoopback, () => {}));
    const [failure, detail] = await stream.closed;
    expect(failure).toBe('tls');
    expect(detail).toContain('certificate');
    expect(stream.events).toEqual(['closed']);
  });

  test('fails with a TLS error if the port uses another protocol, or closes', async () => {
    const chatty = await listen((socket) => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const curt = await listen((socket) => void socket.once('data', () => socket.end()));
    for (const target of [chatty, curt]) {
      const [failure] = await new Stream(makeNodeTransport({ tls: { ca } }), target).closed;
      expect(failure).toBe('tls');
    }
    const [failure] = await new Stream(makeNodeTransport({ tls: { ca } }), await deadTarget()).closed;
    expect(failure).toBe('refused');
  });

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('reports that the server requires a certificate (%s)', async (version) => {
    const options: TlsServerOptions = { ca, requestCert: true, rejectUnauthorized: true, maxVersion: version };
    const target = await listenTls(forLoopback, (socket) => void socket.write('welcome'), options);

    const anonymous = new Stream(makeNodeTransport({ tls: { ca } }), target);
    const [failure, detail] = await anonymous.closed;
    expect(failure).toBe('tls');
    expect(detail).toMatch(/^(SSL routines: .*alert|the server closed|Client network socket)/);

    const { cert, key } = ofClient;
    const known = new Stream(makeNodeTransport({ tls: { ca, cert, key } }), target);
    await expect.poll(() => known.received).toBe('welcome');
  });

  test('explains what may be wrong when a server closes right after a TLS 1.3 handshake', async () => {
    const target = await listenTls(forLoopback, (socket) => void socket.end());
    const [failure, detail] = await new Stream(makeNodeTransport({ tls: { ca } }), target).closed;
    expect(failure).toBe(null);
    expect(detail).toContain('it may have refused the certificate of this client');
  });

  test('calls the options function again for each connection', async () => {
    const target = await listenTls(forLoopback, () => {});
    const trusted = [undefined, ca];
    const transport = makeNodeTransport({ tls: () => ({ ca: trusted.shift() }) });

    expect((await new Stream(transport, target).closed)[0]).toBe('tls');
    await new Stream(transport, target).opened;
  });

  test('reports unavailable or invalid options in a separate event', async () => {
    const target = await listenTls(forLoopback, () => {});
    const missing = new Stream(
      makeNodeTransport({
        tls: () => {
          throw new Error('no such file: client.pem');
        },
      }),
      target,
    );
    const broken = new Stream(makeNodeTransport({ tls: { cert: 'no PEM', key: 'neither' } }), target);
    const abandoned = new Stream(makeNodeTransport({ tls: { cert: 'no PEM', key: 'neither' } }), target);
    abandoned.destroy();

    expect(missing.events).toEqual([]);
    expect(await missing.closed).toEqual(['tls', 'no such file: client.pem']);
    expect((await broken.closed)[0]).toBe('tls');
    expect(abandoned.events).toEqual([]);
  });
});

/** A stream that records its events. */
class Stream {
  readonly events: string[] = [];
  received = '';
  readonly opened: Promise<void>;
  readonly closed: Promise<[AttemptFailure | null, string]>;
  readonly #stream: TransportStream;

  constructor(transport: Transport, target: Target) {
    const [opened, open] = promise();
    const [closed, close] = promise<[AttemptFailure | null, string]>();
    this.opened = opened;
    this.closed = closed;
    this.#stream = transport.connect(target, {
      onOpen: () => {
        this.events.push('open');
        open();
      },
      onBytes: (chunk) => {
        this.received += new TextDecoder().decode(chunk);
      },
      onClosed: (failure, detail) => {
        this.events.push('closed');
        close([failure, detail]);
      },
    });
    cleanups.push(() => this.destroy());
  }

  write(text: string): boolean {
    return this.writeBytes(new TextEncoder().encode(text));
  }

  writeBytes(bytes: Uint8Array): boolean {
    return this.#stream.write(bytes);
  }

  destroy(): void {
    this.#stream.destroy();
  }
}

function listen(onSocket: (socket: Socket) => void, allowHalfOpen = false): Promise<Target> {
  return targetOf(createServer({ allowHalfOpen }, onSocket));
}

function listenTls(
  pair: { cert: string; key: string },
  onSocket: (socket: Socket) => void,
  options: TlsServerOptions = {},
): Promise<Target> {
  const server = createTlsServer({ ...options, cert: pair.cert, key: pair.key }, onSocket);
  // Some of these tests make the handshake fail.
  server.on('tlsClientError', () => {});
  return targetOf(server);
}

async function targetOf(server: Server): Promise<Target> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  server.on('secureConnection', (socket: Socket) => void socket.on('error', () => {}));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port, address: '127.0.0.1' };
}

/** An address where something listened a moment ago. */
async function deadTarget(): Promise<Target> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return { host: '127.0.0.1', port, address: '127.0.0.1' };
}

function promise<T = void>(): [Promise<T>, (value: T) => void] {
  let resolve: (value: T) => void = () => {};
  const made = new Promise<T>((settle) => {
    resolve = settle;
  });
  return [made, resolve];
}
