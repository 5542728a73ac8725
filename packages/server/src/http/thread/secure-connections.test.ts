import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request as requestPlain } from 'node:http';
import { Agent, type RequestOptions, request as requestTls } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect as connectTls, TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { MessageChannel } from 'node:worker_threads';
import type { FastifyInstance } from 'fastify';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { CertificateAuthority } from '../../tls/certificate-authority.ts';
import type { TlsOptions } from '../../tls/options.ts';
import { HttpFigures } from '../figures.ts';
import type { Question, ToHttp, ToService } from '../messages.ts';
import { DEFAULT_ADMIN_TLS_OPTIONS } from '../options.ts';
import { makeAdminApp } from './admin-app.ts';
import { keepOpening } from './listen.ts';
import { MetricsReader } from './metrics-app.ts';
import { ServiceThread } from './service-thread.ts';

const directory = mkdtempSync(join(tmpdir(), 'secure-admin-'));
const authority = new CertificateAuthority();
const NAMES = { names: ['IP:127.0.0.1'] };
const ofServer = authority.issue('server', NAMES);
const ann = authority.issue('ann');
const keyStorePath = join(directory, 'server.pem');
const trustStorePath = join(directory, 'ca.pem');
const STORES = fileURLToPath(new URL('../../tls/testing/stores/', import.meta.url));
writeFileSync(trustStorePath, authority.certificate);

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
afterAll(() => rmSync(directory, { recursive: true }));

test('a unified port answers with TLS and without, and tells browsers to stay with TLS', async () => {
  const { port, figures } = await start({ isUnified: true });
  // As Apache's server 3.8.0 with Jetty 9.4 wrote it.
  const staysSecure = 'max-age=86400; includeSubDomains';
  expect(await ask(`https://127.0.0.1:${port}/commands/ruok`)).toEqual({ status: 200, text: 'answered', staysSecure });
  expect(await ask(`http://127.0.0.1:${port}/commands/ruok`)).toEqual({ status: 200, text: 'answered' });
  expect(figures.plainConnections).toBe(1);
});

test('a request whose bytes come one by one is understood on a unified port', async () => {
  const { port } = await start({ isUnified: true });
  const socket = track(connect(port, '127.0.0.1'));
  const answer = new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(chunk.toString())));
  for (const letter of 'GET /commands/ruok HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n') {
    socket.write(letter);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
});

test('a port for TLS alone refuses everything else, and says so once a second at most', async () => {
  const { port, figures, logged } = await start({});
  await expect(ask(`http://127.0.0.1:${port}/commands/ruok`)).rejects.toThrow();
  await expect(ask(`http://127.0.0.1:${port}/commands/ruok`)).rejects.toThrow();
  await expect.poll(() => figures.failedHandshakes).toBe(2);
  expect(logged.filter((text) => text.includes('it does not speak TLS'))).toHaveLength(1);
  expect(await ask(`https://127.0.0.1:${port}/commands/ruok`)).toMatchObject({ status: 200 });
});

test('a certificate that is asked for is checked, and comes with the question', async () => {
  const { port, questions } = await start({ clientAuth: 'need' });
  const url = `https://127.0.0.1:${port}/commands/snapshot`;
  await expect(ask(url)).rejects.toThrow();
  expect(await ask(url, { cert: ann.certificate, key: ann.key })).toMatchObject({ status: 200 });
  const [question] = questions;
  const certificate = question?.kind === 'command' ? question.certificate : null;
  expect(Buffer.from(certificate ?? [])).toEqual(new X509Certificate(ann.certificate).raw);
  const stranger = new CertificateAuthority().issue('ann');
  await expect(ask(url, { cert: stranger.certificate, key: stranger.key })).rejects.toThrow();
  expect(questions).toHaveLength(1);
});

test('a certificate is read once a connection, however much is asked', async () => {
  const { port, questions } = await start({ clientAuth: 'need' });
  const read = vi.spyOn(TLSSocket.prototype, 'getPeerX509Certificate');
  const readOld = vi.spyOn(TLSSocket.prototype, 'getPeerCertificate');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  ends.push(() => agent.destroy());
  const options = { cert: ann.certificate, key: ann.key, agent };
  for (let i = 0; i < 3; i++) await ask(`https://127.0.0.1:${port}/commands/snapshot`, options);
  // The client reads that of the server.
  const readers = [...read.mock.contexts, ...readOld.mock.contexts].filter(
    (socket) => (socket as TLSSocket).localPort === port,
  );
  vi.restoreAllMocks();
  expect(questions).toHaveLength(3);
  for (const question of questions) expect(question).toMatchObject({ certificate: expect.any(Uint8Array) });
  expect(readers).toHaveLength(1);
});

test.each(['key.jks', 'openssl.p12'])('a key store of Java is shown: %s', async (name) => {
  const { port } = await start({ keyStore: { path: STORES + name, password: 'changeit', passwordPath: null } });
  expect(await shown(port)).toBe(new X509Certificate(readFileSync(`${STORES}s.crt`)).fingerprint256);
});

test('certificates are renewed while it runs', async () => {
  const { port, figures } = await start({ renewalPollMs: 10 });
  expect(await shown(port)).toBe(new X509Certificate(ofServer.certificate).fingerprint256);
  const next = authority.issue('next', { ...NAMES, validToMs: Date.now() + 100 * 86_400_000 });
  writeFileSync(keyStorePath, next.keyStore);
  await expect.poll(() => shown(port)).toBe(new X509Certificate(next.certificate).fingerprint256);
  await expect.poll(() => figures.adminDaysLeft).toBe(99);
});

test('connections that never finish their handshake do not lock others out', async () => {
  const { port } = await start({});
  // More than the port takes at all; none of them ends by itself.
  const silent = Array.from({ length: 100 }, () => track(connect(port, '127.0.0.1')));
  await Promise.all(silent.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
  expect(await ask(`https://127.0.0.1:${port}/commands/ruok`)).toMatchObject({ status: 200 });
});

test('nor do idle connections that have finished it', async () => {
  const { port, figures } = await start({});
  const options: ConnectionOptions = { host: '127.0.0.1', port, ca: authority.certificate };
  for (let i = 0; i < 64; i++) {
    const socket = track(connectTls(options));
    await new Promise((resolve) => socket.once('secureConnect', resolve));
  }
  expect(await ask(`https://127.0.0.1:${port}/commands/ruok`)).toMatchObject({ status: 200 });
  expect(figures.exceededConnections).toBe(1);
});

test('a key store that cannot be used leaves the port closed, with the reason, until it can be used', async () => {
  const path = join(directory, 'later.pem');
  const { port, failures } = await start({ keyStore: { path, password: '', passwordPath: null } }, () => {
    writeFileSync(path, ofServer.keyStore);
  });
  expect(failures).toEqual([
    `admin.ssl.keyStore.location: ${path} cannot be read: there is no such file; correct the path, or the rights of the file`,
  ]);
  expect(await ask(`https://127.0.0.1:${port}/commands/ruok`)).toMatchObject({ status: 200 });
});

function track<T extends Socket>(socket: T): T {
  ends.push(() => socket.destroy());
  return socket.on('error', () => {});
}

interface Received {
  readonly status: number | undefined;
  readonly text: string;
  readonly staysSecure: string | undefined;
}

function ask(url: string, options: RequestOptions = {}): Promise<Received> {
  const open = url.startsWith('https:') ? requestTls : requestPlain;
  return new Promise((resolve, reject) => {
    const asked = open(url, { ca: authority.certificate, agent: false, ...options }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      const staysSecure = response.headers['strict-transport-security'];
      response.on('end', () => resolve({ status: response.statusCode, text, staysSecure }));
    });
    asked.on('error', reject).end();
  });
}

/** The fingerprint of the certificate that is shown. */
function shown(port: number): Promise<string> {
  const options: ConnectionOptions = { host: '127.0.0.1', port, rejectUnauthorized: false };
  return new Promise((resolve, reject) => {
    const socket = connectTls(options, () => {
      const certificate = socket.getPeerX509Certificate();
      socket.destroy();
      resolve(certificate?.fingerprint256 ?? '');
    });
    socket.on('error', reject);
  });
}

/**
 * An admin port whose service answers each command with a word.
 *
 * @param onFailed it could not be opened, and is tried again
 */
async function start(
  { isUnified = false, ...options }: Partial<TlsOptions> & { readonly isUnified?: boolean },
  onFailed: () => void = () => {},
): Promise<{
  readonly port: number;
  readonly figures: HttpFigures;
  readonly questions: readonly Question[];
  readonly logged: readonly string[];
  readonly failures: readonly string[];
}> {
  writeFileSync(keyStorePath, ofServer.keyStore);
  const store = (path: string): TlsOptions['keyStore'] => ({ path, password: '', passwordPath: null });
  const stores = { keyStore: store(keyStorePath), trustStore: store(trustStorePath) };
  const tls = { isUnified, options: { ...DEFAULT_ADMIN_TLS_OPTIONS, ...stores, ...options } };
  const questions: Question[] = [];
  const logged: string[] = [];
  const { port1, port2 } = new MessageChannel();
  ends.push(() => port2.close());
  const failures: string[] = [];
  const listening = new Promise<number>((resolve) => {
    const send = (message: ToHttp): void => port2.postMessage(message);
    port2.on('message', (message: ToService) => {
      if (message.kind === 'listening') resolve(message.at.port);
      else if (message.kind === 'failed') {
        failures.push(message.reason);
        onFailed();
      } else if (message.kind === 'log') logged.push(message.text);
      else if (message.kind === 'ask') {
        const { id, question } = message;
        questions.push(question);
        send({ kind: 'head', id, head: { status: 200, contentType: 'text/plain', headers: {}, file: null } });
        send({ kind: 'part', id, text: 'answered', isLast: true });
      }
    });
  });
  const place = { host: '127.0.0.1', port: 0, commandUrl: '/commands', idleTimeoutMs: 60_000, tls };
  const service = new ServiceThread(port1);
  const figures = new HttpFigures();
  const make = (): FastifyInstance => {
    const app = makeAdminApp(place, service, new MetricsReader(service));
    ends.push(() => app.close());
    return app;
  };
  await keepOpening(make, { port: 'admin', at: place, tls, retryMs: 1 }, service, figures);
  return { port: await listening, figures, questions, logged, failures };
}
