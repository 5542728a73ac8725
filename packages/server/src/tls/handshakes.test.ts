import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { UNLIMITED_SHARE } from '../node/descriptors.ts';
import { CertificateAuthority } from './certificate-authority.ts';
import { Handshakes } from './handshakes.ts';
import { DEFAULT_TLS_OPTIONS, type TlsOptions } from './options.ts';
import { readTlsSettings } from './tls-settings.ts';

const directory = mkdtempSync(join(tmpdir(), 'handshakes-'));
const authority = new CertificateAuthority();
const ofClient = authority.issue('client');
const CLIENTS = 40;
/** `READING_MAX` of handshakes.ts. */
const PER_TURN_MAX = 4;

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
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) server.close();
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Listens, and accepts by `Handshakes`: in which turn of the event loop each handshake was done. */
async function start(
  settings: TlsOptions = options,
): Promise<{ readonly port: number; readonly doneIn: number[]; readonly handshakes: Handshakes }> {
  const doneIn: number[] = [];
  let turn = 0;
  const handshakes = new Handshakes(await readTlsSettings(settings, Date.now()), 0, {
    onSecure: (socket) => {
      socket.on('error', () => {});
      sockets.push(socket);
      doneIn.push(turn);
    },
    onFailed: () => {},
    onExceeded: () => {},
  });
  const count = (): void => {
    turn++;
    if (servers.length > 0) setImmediate(count);
  };
  const port = await listen((socket) => handshakes.accept(socket, UNLIMITED_SHARE));
  count();
  return { port, doneIn, handshakes };
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

function connectClients(port: number, maxVersion: 'TLSv1.2' | 'TLSv1.3'): readonly TLSSocket[] {
  return Array.from({ length: CLIENTS }, () => {
    const { certificate: cert, key } = ofClient;
    const socket = connectTls({ port, host: '127.0.0.1', ca: authority.certificate, cert, key, maxVersion });
    socket.on('error', () => {});
    sockets.push(socket);
    return socket;
  });
}

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'a turn goes on with few handshakes, although all peers answer at once (%s)',
  async (version) => {
    const { port, doneIn, handshakes } = await start();
    const dam = await Dam.before(port);
    const clients = connectClients(dam.port, version);
    await expect.poll(() => dam.held.length).toBe(CLIENTS);
    expect(doneIn).toEqual([]);
    dam.open();
    await expect.poll(() => doneIn.length).toBe(CLIENTS);
    const most = Math.max(...doneIn.map((turn) => doneIn.filter((other) => other === turn).length));
    expect(most).toBeLessThanOrEqual(PER_TURN_MAX);
    expect(handshakes.count).toBe(0);
    expect(clients.every(({ destroyed }) => !destroyed)).toBe(true);
  },
);

test('those that stall are read from in turn: each may go on later', async () => {
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

/** Connects so many times, one after the other, in a thread of its own: it answers while the server is in the middle of a turn. */
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

test('whoever shows no certificate is told so, however fast it answers', async () => {
  const { port } = await start({ ...options, clientAuth: 'need' });
  const workerData = { port, ca: authority.certificate, times: 200 };
  const client = new Worker(CLIENT, { eval: true, workerData });
  const [codes] = (await once(client, 'message')) as [string[]];
  expect(new Set(codes)).toEqual(new Set(['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED']));
  await client.terminate();
});
