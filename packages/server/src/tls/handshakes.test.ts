import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket, Server as TlsServer } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { UNLIMITED_SHARE } from '../node/descriptors.ts';
import { CertificateAuthority } from './certificate-authority.ts';
import { Handshakes } from './handshakes.ts';
import { DEFAULT_TLS_OPTIONS, type TlsOptions } from './options.ts';
import { readTlsSettings } from './tls-settings.ts';

const directory = mkdtempSync(join(tmpdir(), 'handshakes-'));
const authority = new CertificateAuthority();
const ofClient = authority.issue('client');
const CLIENTS = 40;

let options: TlsOptions;
const servers: Server[] = [];
const sockets: Socket[] = [];

beforeAll(() => {
  const path = join(directory, 'key.pem');
  writeFileSync(path, authority.issue('server', { names: ['IP:127.0.0.1'] }).keyStore);
  const trustPath = join(directory, 'trust.pem');
  writeFileSync(trustPath, authority.certificate);
  const none = { password: '', passwordPath: null };
  options = { ...DEFAULT_TLS_OPTIONS, keyStore: { path, ...none }, trustStore: { path: trustPath, ...none } };
});
afterEach(() => {
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) server.close();
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Listens, and accepts by `Handshakes`: in which turn of the event loop each handshake was done, and why others were not. */
async function start(settings: TlsOptions = options): Promise<{
  readonly port: number;
  readonly doneIn: number[];
  readonly failures: string[];
  /** Ports of peers that were too many. */
  readonly exceeded: number[];
  readonly handshakes: Handshakes;
  /** The turn of the event loop. */
  readonly turn: () => number;
}> {
  const doneIn: number[] = [];
  const failures: string[] = [];
  const exceeded: number[] = [];
  let turn = 0;
  const handshakes = new Handshakes(await readTlsSettings(settings, Date.now()), 0, {
    onSecure: (socket) => {
      socket.on('error', () => {});
      sockets.push(socket);
      doneIn.push(turn);
    },
    onFailed: (_, reason) => failures.push(reason),
    onExceeded: ({ remotePort = 0 }) => exceeded.push(remotePort),
  });
  const count = (): void => {
    turn++;
    if (servers.length > 0) setImmediate(count);
  };
  const port = await listen((socket) => handshakes.accept(socket, UNLIMITED_SHARE));
  count();
  return { port, doneIn, failures, exceeded, handshakes, turn: () => turn };
}

/** What a client of TLS sends first. */
async function recordHello(): Promise<Buffer> {
  const port = await listen((socket) => sockets.push(socket.on('error', () => {})));
  const accepted = sockets.length;
  const [client] = connectClients(port, 'TLSv1.3', 1);
  await waitFor(() => sockets.length > accepted + 1);
  const [hello] = (await once(sockets.at(-1)!, 'data')) as [Buffer];
  client?.destroy();
  return hello;
}

async function listen(onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer(onConnection).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** Between clients and a server: passes on what clients send first, and keeps the rest. */
class Dam {
  readonly held: (() => void)[] = [];
  port = 0;

  static async before(port: number): Promise<Dam> {
    const dam = new Dam();
    dam.port = await listen((fromClient) => {
      const toServer = connect({ port, host: '127.0.0.1' });
      for (const socket of [fromClient, toServer]) socket.on('error', () => {}).setNoDelay(true);
      sockets.push(fromClient, toServer);
      toServer.pipe(fromClient);
      fromClient.once('data', (hello) => {
        toServer.write(hello);
        fromClient.on('data', (more) => dam.held.push(() => toServer.write(more)));
      });
    });
    return dam;
  }

  /** All at once. */
  open(): void {
    for (const pass of this.held.splice(0)) pass();
  }
}

function connectClients(port: number, maxVersion: 'TLSv1.2' | 'TLSv1.3', count = CLIENTS): readonly TLSSocket[] {
  return Array.from({ length: count }, () => {
    const { certificate: cert, key } = ofClient;
    const socket = connectTls({ port, host: '127.0.0.1', ca: authority.certificate, cert, key, maxVersion });
    socket.on('error', () => {});
    sockets.push(socket);
    return socket;
  });
}

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'a turn ends one handshake, although all peers answer at once (%s)',
  async (version) => {
    const { port, doneIn, handshakes } = await start();
    const dam = await Dam.before(port);
    const clients = connectClients(dam.port, version);
    await expect.poll(() => dam.held.length).toBe(CLIENTS);
    expect(doneIn).toEqual([]);
    dam.open();
    await expect.poll(() => doneIn.length).toBe(CLIENTS);
    expect(new Set(doneIn).size).toBe(CLIENTS);
    expect(handshakes.count).toBe(0);
    expect(clients.every(({ destroyed }) => !destroyed)).toBe(true);
  },
);

test('stalled handshakes are read from in turn: each can continue later', async () => {
  const { port, doneIn } = await start();
  const dam = await Dam.before(port);
  connectClients(dam.port, 'TLSv1.3');
  await expect.poll(() => dam.held.length).toBe(CLIENTS);
  // The first and the last that began, and then the others.
  for (const i of [0, CLIENTS - 2]) dam.held.splice(i, 1)[0]?.();
  await expect.poll(() => doneIn.length).toBe(2);
  dam.open();
  await expect.poll(() => doneIn.length).toBe(CLIENTS);
});

test('a turn begins handshakes for two milliseconds, and addresses take turns', async () => {
  stopClock();
  const { port, handshakes, turn } = await start();
  const hello = await recordHello();
  const accepted: Socket[] = [];
  const sent: string[] = [];
  const accept = handshakes.accept.bind(handshakes);
  handshakes.accept = (socket, share) => {
    accept(socket, share);
    accepted.push(socket.pause());
    socket.once('data', () => sent.push(placeOf(socket)));
  };
  const begun: { readonly place: string; readonly turn: number }[] = [];
  const emit = vi.spyOn(TlsServer.prototype, 'emit');
  emit.mockImplementation(function (this: TlsServer, event: string, ...args: unknown[]) {
    if (event === 'connection') {
      begun.push({ place: placeOf(args[0] as Socket), turn: turn() });
      // What it costs.
      vi.advanceTimersByTime(1.5);
    }
    return EventEmitter.prototype.emit.call(this, event, ...args);
  });
  try {
    const hosts = [...Array.from({ length: 6 }, () => '127.0.0.1'), '127.0.0.2', '127.0.0.2', '127.0.0.3'];
    for (const localAddress of hosts) {
      const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {});
      sockets.push(socket);
      await new Promise((resolve) => socket.write(hello, resolve));
    }
    await waitFor(() => accepted.filter(({ readableLength }) => readableLength > 0).length === hosts.length);
    // All of them have sent something before the first one begins.
    for (const socket of accepted) socket.resume();
    await waitFor(() => begun.length === hosts.length);
  } finally {
    emit.mockRestore();
  }
  expect(begun.map(({ place }) => place)).toEqual(inRotation(sent));
  const [first] = begun;
  // The second one of a turn begins before its time is up.
  expect(begun.map((one) => one.turn - first!.turn)).toEqual([0, 0, 1, 1, 2, 2, 3, 3, 4]);
});

/** Connects repeatedly in a thread of its own, so that it answers while the server is in the middle of a turn. */
const CLIENT = `
  const { connect } = require('node:tls');
  const { parentPort, workerData: { port, ca, times } } = require('node:worker_threads');
  const codes = [];
  const next = () => {
    if (codes.length === times) return parentPort.postMessage(codes);
    const socket = connect({ port, host: '127.0.0.1', ca });
    let code = 'none';
    socket.on('error', (error) => { code = error.code; });
    socket.on('close', () => { codes.push(code); next(); });
  };
  next();
`;

test('each is read from for a turn, although the time of others has come in every turn', async () => {
  stopClock();
  const { port, doneIn } = await start();
  const dam = await Dam.before(port);
  connectClients(dam.port, 'TLSv1.3');
  await waitFor(() => dam.held.length >= CLIENTS);
  dam.open();
  while (doneIn.length < CLIENTS) {
    vi.advanceTimersByTime(1);
    await oneTurn();
  }
});

test('one that has sent nothing gives way to a newcomer, one whose handshake has begun does not', async () => {
  const { port, doneIn, exceeded, handshakes } = await start({ ...options, handshakesMax: 2 });
  const dam = await Dam.before(port);
  connectClients(dam.port, 'TLSv1.3', 1);
  await expect.poll(() => dam.held.length).toBeGreaterThan(0);
  const silent = connect({ port, host: '127.0.0.1' }).on('error', () => {});
  sockets.push(silent);
  await expect.poll(() => handshakes.count).toBe(2);
  const { localPort } = silent;
  connectClients(port, 'TLSv1.3', 1);
  await expect.poll(() => doneIn.length).toBe(1);
  expect(exceeded).toEqual([localPort]);
  dam.open();
  await expect.poll(() => doneIn.length).toBe(2);
});

test('a client without a certificate is told so, however fast it answers', async () => {
  const { port } = await start({ ...options, clientAuth: 'need' });
  const workerData = { port, ca: authority.certificate, times: 200 };
  const client = new Worker(CLIENT, { eval: true, workerData });
  const [codes] = (await once(client, 'message')) as [string[]];
  expect(new Set(codes)).toEqual(new Set(['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED']));
  await client.terminate();
});

describe('with a deadline', () => {
  const { handshakeTimeoutMs } = DEFAULT_TLS_OPTIONS;
  const TOO_LATE = [`it did not finish its TLS handshake within ${handshakeTimeoutMs} ms`];

  test('a peer has time until its first byte, and as much again once its handshake has begun', async () => {
    stopClock();
    const { port, failures, handshakes } = await start();
    const dam = await Dam.before(port);
    const silent = connect({ port, host: '127.0.0.1' }).on('error', () => {});
    sockets.push(silent);
    await waitFor(() => handshakes.count === 1);
    vi.advanceTimersByTime(handshakeTimeoutMs - 1000);
    connectClients(dam.port, 'TLSv1.3', 1);
    await waitFor(() => dam.held.length === 1);
    expect(failures).toEqual([]);
    vi.advanceTimersByTime(1001);
    expect(failures).toEqual(TOO_LATE);
    expect(handshakes.count).toBe(1);
    vi.advanceTimersByTime(handshakeTimeoutMs - 1002);
    expect(handshakes.count).toBe(1);
    vi.advanceTimersByTime(10);
    expect(failures).toEqual([...TOO_LATE, ...TOO_LATE]);
    expect(handshakes.count).toBe(0);
  });

  test('a peer that sends one byte late, and then one after the other, has its place for twice the time and no longer', async () => {
    stopClock();
    const hello = await recordHello();
    const { port, failures, handshakes } = await start();
    const accepted: Socket[] = [];
    const accept = handshakes.accept.bind(handshakes);
    handshakes.accept = (socket, share) => {
      accept(socket, share);
      accepted.push(socket);
    };
    const slow = connect({ port, host: '127.0.0.1' }).on('error', () => {});
    sockets.push(slow);
    await waitFor(() => handshakes.count === 1);
    let sent = 0;
    const send = async (byte: Buffer): Promise<void> => {
      slow.write(byte);
      sent += byte.length;
      await waitFor(() => accepted[0]?.bytesRead === sent);
      // It is taken in the next turn.
      for (let turns = 0; turns < 3; turns++) await oneTurn();
    };
    vi.advanceTimersByTime(handshakeTimeoutMs - 1);
    await send(hello.subarray(0, 1));
    for (let at = 1; at < 10; at++) {
      vi.advanceTimersByTime(handshakeTimeoutMs / 10);
      await send(hello.subarray(at, at + 1));
    }
    vi.advanceTimersByTime(handshakeTimeoutMs / 10 - 1);
    expect(failures).toEqual([]);
    expect(handshakes.count).toBe(1);
    vi.advanceTimersByTime(10);
    expect(failures).toEqual(TOO_LATE);
    expect(handshakes.count).toBe(0);
  });

  test('what it waits for its turn is not counted', async () => {
    stopClock();
    const { port, failures, handshakes, turn } = await start();
    const accept = handshakes.accept.bind(handshakes);
    let isQueued = false;
    handshakes.accept = (socket, share) => {
      accept(socket, share);
      // Behind its first bytes, and before the turn that begins it.
      socket.once('data', () => {
        handshakes.freeze();
        isQueued = true;
      });
    };
    const dam = await Dam.before(port);
    connectClients(dam.port, 'TLSv1.3', 1);
    await waitFor(() => isQueued);
    const queuedIn = turn();
    await waitFor(() => turn() > queuedIn + 2);
    vi.advanceTimersByTime(3 * handshakeTimeoutMs);
    handshakes.thaw();
    await waitFor(() => dam.held.length === 1);
    vi.advanceTimersByTime(handshakeTimeoutMs - 1);
    expect(failures).toEqual([]);
    vi.advanceTimersByTime(10);
    expect(failures).toEqual(TOO_LATE);
  });
});

/** Host and port of a peer. */
function placeOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** The first of each host in the order in which hosts came, then the second of each, and so on. */
function inRotation(places: readonly string[]): readonly string[] {
  const roundOf = new Map<string, number>();
  const rounds: string[][] = [];
  for (const place of places) {
    const host = place.replace(/ .*/, '');
    const round = roundOf.get(host) ?? 0;
    roundOf.set(host, round + 1);
    rounds[round] = [...(rounds[round] ?? []), place];
  }
  const hosts = [...roundOf.keys()];
  const rank = (place: string): number => hosts.indexOf(place.replace(/ .*/, ''));
  return rounds.flatMap((round) => round.sort((a, b) => rank(a) - rank(b)));
}

/** Sockets and turns of the event loop are real from now on, time is not. */
function stopClock(): void {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
}

async function waitFor(isSo: () => boolean): Promise<void> {
  while (!isSo()) await oneTurn();
}

function oneTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
