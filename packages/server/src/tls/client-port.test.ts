import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { readZooCfg } from '../config/zoo-cfg.ts';
import { ServerError } from '../exit-codes.ts';
import { TextLogger } from '../logger.ts';
import type { RunningServer } from '../running-server.ts';
import { startServer } from '../server.ts';
import { CertificateAuthority } from './certificate-authority.ts';

const directory = mkdtempSync(join(tmpdir(), 'client-port-'));
const authority = new CertificateAuthority();
const NAMES = { names: ['IP:127.0.0.1', 'DNS:localhost'] };
const ofServer = authority.issue('server', NAMES);
const ann = authority.issue('ann');
const DAY_MS = 86_400_000;
const PATIENCE = { timeout: 60_000 };

let count = 0;
const servers: RunningServer[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});
afterAll(() => rmSync(directory, { recursive: true }));

describe('a client', () => {
  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'speaks %s on the secure port and plain text on the other',
    async (version) => {
      const { server } = await start();
      const options = { ...identity(ann), maxVersion: version, minVersion: version } as const;
      expect(await ask(secure(server, options))).toBe('imok');
      expect(await ask(plain(server.address.port))).toBe('imok');
    },
  );

  test('speaks a cipher suite that the keys name, or none', async () => {
    const { server, log } = await start('ssl.ciphersuites=TLS_CHACHA20_POLY1305_SHA256');
    const socket = secure(server, identity(ann));
    await once(socket, 'secureConnect');
    expect(socket.getCipher().standardName).toBe('TLS_CHACHA20_POLY1305_SHA256');
    await expect(ask(secure(server, { ...identity(ann), ciphers: 'TLS_AES_256_GCM_SHA384' }))).rejects.toThrow();
    await expect.poll(() => log.join(''), PATIENCE).toContain('it shares no cipher suite with this server');
  });

  test('may speak either on a unified port', async () => {
    const { server } = await start('client.portUnification=true');
    expect(await ask(secure(server, identity(ann), server.address.port))).toBe('imok');
    expect(await ask(plain(server.address.port))).toBe('imok');
  });

  test('without TLS is counted where others have it', async () => {
    const { server } = await start('client.portUnification=true');
    expect(await ask(plain(server.address.port))).toBe('imok');
    expect(await ask(secure(server, identity(ann), server.address.port))).toBe('imok');
    expect(await ask(secure(server, identity(ann)), 'mntr')).toMatch(
      /zk_non_mtls_remote_conn_count\t0\nzk_non_mtls_local_conn_count\t1\n/,
    );
  });

  test('whose first bytes come one by one is understood on a unified port', async () => {
    const { server } = await start('client.portUnification=true');
    const socket = plain(server.address.port);
    for (const letter of 'ruok') {
      socket.write(letter);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await ask(socket, '')).toBe('imok');
  });

  test('gets long answers and takes them while it reads', async () => {
    const { server } = await start();
    const words = await Promise.all(Array.from({ length: 20 }, () => ask(secure(server, identity(ann)), 'mntr')));
    for (const word of words) expect(word).toContain('zk_znode_count');
  });

  test('of a server that has the secure port alone finds no other', async () => {
    const { server } = await start('', []);
    expect(server.address).toEqual(server.secureAddress);
    expect(await ask(secure(server, identity(ann)), 'conf')).toMatch(/^clientPort=-1\nsecureClientPort=\d+\n/);
  });
});

describe('a certificate of a client', () => {
  const stranger = new CertificateAuthority().issue('ann');
  const expired = authority.issue('ann', { validFromMs: Date.now() - 3 * DAY_MS, validToMs: Date.now() - DAY_MS });
  const revoked = authority.issue('revoked');

  test.each([
    ['need', 'none', null, 'it has shown no certificate, which clientAuth=need asks for'],
    [
      'need',
      'of another authority',
      stranger,
      'its certificate is refused: no authority of the trust store has issued it',
    ],
    ['need', 'that has expired', expired, 'its certificate is refused: it has expired'],
    ['need', 'that is revoked', revoked, 'its certificate is refused: it is revoked'],
    [
      'want',
      'of another authority',
      stranger,
      'its certificate is refused: no authority of the trust store has issued it',
    ],
    ['want', 'that is revoked', revoked, 'its certificate is refused: it is revoked'],
  ] as const)('with clientAuth=%s: %s is refused, and the log says why', async (clientAuth, _, shown, reason) => {
    writeFileSync(join(directory, 'crl.pem'), authority.revoke([revoked.serial]));
    const { server, log } = await start(`ssl.clientAuth=${clientAuth}\nssl.crl.location=crl.pem\nssl.crl=true`);
    const socket = secure(server, shown === null ? {} : identity(shown));
    expect(await ask(socket).catch(() => '')).toBe('');
    await expect.poll(() => log.join(''), PATIENCE).toContain(reason);
    expect(await ask(plain(server.address.port), 'mntr')).toMatch(
      /zk_auth_failed_count\t1\n[\s\S]*zk_unsuccessful_handshake\t1\n/,
    );
    // Others get in: the list of revoked certificates says nothing of theirs.
    expect(await ask(secure(server, identity(ann)))).toBe('imok');
  });

  test.each(['want', 'none'])('with clientAuth=%s need not be there', async (clientAuth) => {
    const { server } = await start(`ssl.clientAuth=${clientAuth}`);
    expect(await ask(secure(server, {}))).toBe('imok');
  });

  test('has to name the address of its client when that is asked for', async () => {
    const { server, log } = await start('ssl.clientHostnameVerification=true');
    expect(await ask(secure(server, identity(authority.issue('near', NAMES))))).toBe('imok');
    expect(
      await ask(secure(server, identity(authority.issue('far', { names: ['IP:10.0.0.1'] })))).catch(() => ''),
    ).toBe('');
    await expect
      .poll(() => log.join(''), PATIENCE)
      .toContain('(CN=far, IP Address:10.0.0.1) does not name its address');
  });
});

describe('the wrong protocol', () => {
  test('plain text on the secure port closes the connection without an answer', async () => {
    const { server, log } = await start();
    expect(await ask(plain(server.secureAddress!.port))).toBe('');
    await expect
      .poll(() => log.join(''), PATIENCE)
      .toContain('it does not speak TLS, and this port takes nothing else');
  });

  test('TLS on the plain port closes the connection, and the log says what to do', async () => {
    const { server, log } = await start();
    await expect(ask(secure(server, identity(ann), server.address.port))).rejects.toThrow();
    await expect
      .poll(() => log.join(''), PATIENCE)
      .toMatch(/client 127\.0\.0\.1:\d+ .*it speaks TLS, and this port does not: the client needs secureClientPort/);
    expect(await ask(plain(server.address.port))).toBe('imok');
  });

  test('TLS that turns to garbage, or ends early, costs nothing but that connection', async () => {
    const { server } = await start();
    for (const bytes of [
      [0x16],
      [0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5],
      [0x16, 3, 1, 0xff, 0xff, ...new Array(2000).fill(7)],
    ]) {
      const socket = plain(server.secureAddress!.port);
      socket.end(Uint8Array.from(bytes));
      await closed(socket.resume());
    }
    expect(await ask(secure(server, identity(ann)))).toBe('imok');
  });
});

describe('handshakes', () => {
  test('end after their time, silent ones and those that have begun', async () => {
    const { server } = await start('ssl.handshakeDetectionTimeoutMillis=200\nclient.portUnification=true');
    // Several times: the deadlines of Node.js and ours must not race.
    for (let i = 0; i < 5; i++) {
      const silent = plain(server.secureAddress!.port);
      const begun = plain(server.address.port);
      begun.write(Uint8Array.of(0x16, 3, 1));
      await Promise.all([closed(silent.resume()), closed(begun.resume())]);
    }
    await expect
      .poll(() => ask(plain(server.address.port), 'mntr'), PATIENCE)
      .toMatch(/zk_outstanding_tls_handshake\t0\n/);
  });

  test('that are not begun make room for those that are, and clients that are in notice nothing', async () => {
    const { server, log } = await start('netty.server.outstandingHandshake.limit=20');
    const inside = secure(server, identity(ann));
    await once(inside, 'secureConnect');
    const silent = Array.from({ length: 100 }, () => plain(server.secureAddress!.port));
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    for (let i = 0; i < 5; i++) expect(await ask(secure(server, identity(ann)))).toBe('imok');
    expect(await ask(inside)).toBe('imok');
    expect(await ask(plain(server.address.port), 'mntr')).toMatch(/zk_outstanding_tls_handshake\t\d{1,2}\n/);
    expect(log.join('')).toContain('connections have not finished their TLS handshake, as many as a port may have');
  });

  test('that stall in the middle do not delay others', async () => {
    const { server } = await start('maxClientCnxns=0');
    const hello = await recordHello();
    const stalled = Array.from({ length: 200 }, () => plain(server.secureAddress!.port));
    for (const socket of stalled) socket.write(hello);
    // The server has answered all of them, and waits.
    await Promise.all(stalled.map((socket) => once(socket, 'data')));
    expect(await ask(secure(server, identity(ann)))).toBe('imok');
    expect(await ask(plain(server.address.port), 'mntr')).toMatch(/zk_outstanding_tls_handshake\t200\n/);
  });

  test('of one address are bounded by maxClientCnxns', async () => {
    const { server, log } = await start('maxClientCnxns=5');
    const silent = Array.from({ length: 8 }, () => plain(server.secureAddress!.port));
    await Promise.all(silent.slice(0, 3).map((socket) => closed(socket.resume())));
    await expect.poll(() => log.join(''), PATIENCE).toContain('5 connections from its address have not finished');
  });

  test('begin again where a session of TLS is resumed, with the certificate that was shown', async () => {
    const { server } = await start('4lw.commands.whitelist=*');
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const options = { ...identity(ann), maxVersion: version, minVersion: version } as const;
      const first = secure(server, options);
      const [session] = await Promise.all([once(first, 'session'), ask(first)]);
      const second = secure(server, { ...options, session: session[0] as Buffer });
      await once(second, 'secureConnect');
      expect(second.isSessionReused()).toBe(true);
      expect(await ask(second)).toBe('imok');
    }
  });
});

describe('renewal', () => {
  test('shows the new certificate to new clients, and keeps the old one for those that are in', async () => {
    const { server, log } = await start();
    const before = secure(server, identity(ann));
    await once(before, 'secureConnect');
    let threads = 0;
    const onThread = (): void => {
      threads++;
    };
    process.on('worker', onThread);
    writeFileSync(join(directory, `key-${count}.pem`), authority.issue('renewed', NAMES).keyStore);
    await expect.poll(() => log.join(''), PATIENCE).toContain('TLS: renewed: ');
    process.off('worker', onThread);
    // It was read in a thread of its own.
    expect(threads).toBe(1);
    const after = secure(server, identity(ann));
    await once(after, 'secureConnect');
    expect(after.getPeerCertificate().subject.CN).toBe('renewed');
    expect([await ask(before), await ask(after)]).toEqual(['imok', 'imok']);
  });

  test('follows a link that is set to another directory', async () => {
    const place = join(directory, `mounted-${count}`);
    for (const name of ['one', 'two']) {
      mkdirSync(join(place, name), { recursive: true });
      writeFileSync(join(place, name, 'key.pem'), authority.issue(name, NAMES).keyStore);
    }
    symlinkSync('one', join(place, 'data'));
    const { log } = await start(`ssl.keyStore.location=${join(place, 'data', 'key.pem')}`);
    expect(log.join('')).toContain('CN=one');
    symlinkSync('two', join(place, 'next'));
    renameSync(join(place, 'next'), join(place, 'data'));
    await expect.poll(() => log.join(''), PATIENCE).toMatch(/renewed: .*CN=two/);
  });

  test('keeps the old certificate when the new file cannot be used, and says so', async () => {
    const { server, log } = await start();
    writeFileSync(join(directory, `key-${count}.pem`), ofServer.certificate);
    await expect
      .poll(() => log.join(''), PATIENCE)
      .toMatch(/the new files are not used.*certificates and no private key/);
    expect(await ask(secure(server, identity(ann)))).toBe('imok');
  });

  test('takes authorities in and out', async () => {
    const next = new CertificateAuthority('next');
    const { server, log } = await start();
    const newcomer = identity(next.issue('bob'));
    await ask(secure(server, newcomer)).catch(() => {});
    writeFileSync(join(directory, `trust-${count}.pem`), next.certificate);
    await expect.poll(() => log.join(''), PATIENCE).toContain('renewed');
    expect(await ask(secure(server, newcomer))).toBe('imok');
    expect(await ask(secure(server, identity(ann))).catch(() => '')).toBe('');
  });

  test('is asked for from 30 days on, in the log and by mntr', async () => {
    const soon = authority.issue('server', { ...NAMES, validToMs: Date.now() + 5.5 * DAY_MS });
    const { server, log } = await start('', undefined, soon.keyStore);
    expect(log.join('')).toContain('expires in 5 days');
    expect(await ask(plain(server.address.port), 'mntr')).toContain('zk_ssl_certificate_days_left\t5\n');
  });
});

describe('a start is stopped by', () => {
  const other = authority.issue('other');
  const old = authority.issue('old', { validFromMs: Date.now() - 3 * DAY_MS, validToMs: Date.now() - DAY_MS });

  test.each([
    ['a certificate that has expired', old.keyStore, /CN=old expired on .*; renew it/],
    ['a key that does not fit', ofServer.certificate + other.key, /a key that fits none of 1 certificates/],
    ['a file that is no store', 'nothing', /found neither PEM, PKCS12 nor JKS/],
  ])('%s, with one line', async (_, keyStore, message) => {
    const error: ServerError = await start('', undefined, keyStore).then(
      () => expect.unreachable(),
      (reason: ServerError) => reason,
    );
    expect(error).toBeInstanceOf(ServerError);
    expect(error.exitCode).toBe(2);
    expect(error.message).toMatch(message);
    expect(error.message).toContain(`key-${count}.pem`);
  });
});

test('the admin port lists connections by TLS apart from plain ones', async () => {
  const { server, log } = await start('admin.serverPort=0');
  const open = plain(server.address.port);
  const encrypted = secure(server, identity(ann));
  await Promise.all([once(open, 'connect'), once(encrypted, 'secureConnect')]);
  const url = await vi.waitFor(() => {
    const found = log.map((line) => /answered at (http:\S+)/.exec(line)?.[1]).find((some) => some !== undefined);
    if (found === undefined) throw new Error(`no admin port yet: ${log.join('\n')}`);
    return found;
  }, PATIENCE);
  const listed = await vi.waitFor(async () => {
    const answer = (await (await fetch(`${url}/connections`)).json()) as Connections;
    expect(answer.connections).toHaveLength(1);
    expect(answer.secure_connections).toHaveLength(1);
    return answer;
  }, PATIENCE);
  expect(listed.connections[0]?.remote_socket_address).toBe(`127.0.0.1:${open.localPort}`);
  expect(listed.secure_connections[0]?.remote_socket_address).toBe(`127.0.0.1:${encrypted.localPort}`);
});

test('a password of a store stands in no log, and in no answer to a four-letter word', async () => {
  const stores = fileURLToPath(new URL('./testing/stores/', import.meta.url));
  const lines = [
    `ssl.keyStore.location=${stores}key.jks\nssl.keyStore.password=changeit`,
    `ssl.trustStore.location=${stores}trust.p12\nssl.trustStore.password=changeit`,
    'DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=',
  ];
  const { server, log } = await start(lines.join('\n'));
  const words = ['conf', 'cons', 'dump', 'envi', 'mntr', 'srvr', 'stat', 'wchs', 'dirs'];
  const answers = await Promise.all(words.map((word) => ask(plain(server.address.port), word)));
  const everything = [...log, ...answers].join('\n');
  expect(everything).toContain('secureClientPort=');
  expect(everything).toContain('key.jks');
  expect(everything).not.toMatch(/changeit|D\/InIH/);
});

interface Connections {
  readonly connections: readonly { readonly remote_socket_address: string }[];
  readonly secure_connections: readonly { readonly remote_socket_address: string }[];
}

interface Started {
  readonly server: RunningServer;
  readonly log: readonly string[];
}

/** A server with a plain port, unless other lines are given for that, and a secure one. */
async function start(
  lines = '',
  ports = ['clientPort=0', 'clientPortAddress=127.0.0.1'],
  keyStore = ofServer.keyStore,
): Promise<Started> {
  const id = ++count;
  writeFileSync(join(directory, `key-${id}.pem`), keyStore);
  writeFileSync(join(directory, `trust-${id}.pem`), authority.certificate);
  const text = [
    `dataDir=data-${id}`,
    ...ports,
    'secureClientPort=0\nsecureClientPortAddress=127.0.0.1',
    `ssl.keyStore.location=key-${id}.pem\nssl.trustStore.location=trust-${id}.pem`,
    '4lw.commands.whitelist=*',
    lines,
  ].join('\n');
  const log: string[] = [];
  const configuration = readZooCfg({ text, file: 'zoo.cfg', workingDirectory: directory });
  const tls = { ...configuration.server.tls, renewalPollMs: 20 };
  const often = { ...configuration, server: { ...configuration.server, tls } };
  const server = await startServer(often, { logger: new TextLogger('info', (line) => log.push(line)) });
  servers.push(server);
  return { server, log };
}

/** The first bytes of a client, as Node.js sends them. */
async function recordHello(): Promise<Buffer> {
  const trap = createServer().listen(0, '127.0.0.1');
  await once(trap, 'listening');
  connectTls({ port: (trap.address() as AddressInfo).port, host: '127.0.0.1' }).on('error', () => {});
  const [socket] = (await once(trap, 'connection')) as [Socket];
  const [hello] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  trap.close();
  return hello;
}

function plain(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => {});
  sockets.push(socket);
  return socket;
}

function identity({ certificate, key }: { readonly certificate: string; readonly key: string }): ConnectionOptions {
  return { cert: certificate, key };
}

function secure(server: RunningServer, options: ConnectionOptions, port = server.secureAddress!.port): TLSSocket {
  const socket = connectTls({ port, host: '127.0.0.1', ca: authority.certificate, ...options });
  socket.on('error', () => {});
  sockets.push(socket);
  return socket;
}

/** Gracefully or by a reset. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

/** The answer to a four-letter word, until the server closes. */
async function ask(socket: Socket, word = 'ruok'): Promise<string> {
  let answer = '';
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString();
  });
  socket.write(word);
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('close', () => resolve());
  });
  return answer;
}
