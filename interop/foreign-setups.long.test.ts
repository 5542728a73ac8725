import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Client, connect, digestMd5 } from '@meerkat/client';
import { CertificateAuthority, type RunningServer, readZooCfg, startServer } from '@meerkat/server';
import { findFreePorts } from '@meerkat/testing';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { FOREIGN_JAAS, FOREIGN_SETUPS } from '../packages/server/src/config/testing/foreign-setups.ts';
import { describeWith } from './harness/peers.ts';

/*
 * Runs servers with the secured set-ups of other projects. In their files only directories, addresses and ports are
 * changed. The stores are created with keytool and openssl, like theirs.
 */

const run = promisify(execFile);

/** The credentials of a client, and the identity seen by the servers. */
interface Visit {
  readonly port: 'client' | 'secure';
  readonly withTls: boolean;
  readonly login?: { readonly username: string; readonly password: string };
  readonly id: string;
}

const VISITS: Readonly<Record<string, readonly Visit[]>> = {
  'Confluent, SASL and mutual TLS': [
    { port: 'secure', withTls: true, login: { username: 'kafka', password: 'p2' }, id: 'kafka' },
    { port: 'secure', withTls: true, id: 'CN=client' },
    { port: 'client', withTls: false, login: { username: 'admin', password: 'p1' }, id: 'admin' },
  ],
  'Strimzi, TLS on every port': [{ port: 'secure', withTls: true, id: 'CN=client' }],
  'Bitnami, SASL of clients and servers': [
    { port: 'client', withTls: false, login: { username: 'kafka', password: 'p2' }, id: 'kafka' },
  ],
  'Stackable, certificates of clients and servers': [
    { port: 'client', withTls: true, id: 'CN=client' },
    { port: 'client', withTls: false, id: '127.0.0.1' },
  ],
  "kazoo's test suite": [
    { port: 'client', withTls: false, login: { username: 'kafka', password: 'p2' }, id: 'kafka' },
    { port: 'client', withTls: false, id: '127.0.0.1' },
  ],
  "the C client's test suite": [
    { port: 'secure', withTls: true, id: 'CN=client' },
    { port: 'client', withTls: false, login: { username: 'kafka', password: 'p2' }, id: 'kafka' },
  ],
};

describeWith(['apache', 'openssl'], "others' secured set-ups", () => {
  const directory = mkdtempSync(join(tmpdir(), 'foreign-setups-'));
  const authority = new CertificateAuthority();
  const client = authority.issue('client');
  const servers: RunningServer[] = [];

  beforeAll(async () => {
    const write = (name: string, text: string): void => writeFileSync(join(directory, name), text);
    const { key, certificate } = authority.issue('server', { names: ['IP:127.0.0.1'], keyType: 'rsa' });
    write('server.key', key);
    write('server.crt', certificate);
    write('ca.pem', authority.certificate);
    write('jaas.conf', FOREIGN_JAAS);
    for (const password of ['changeit', 'password']) {
      await run(
        'openssl',
        [
          ...[
            'pkcs12',
            '-export',
            '-inkey',
            'server.key',
            '-in',
            'server.crt',
            '-certfile',
            'ca.pem',
            '-name',
            'server',
          ],
          ...['-passout', `pass:${password}`, '-out', `${password}.key.p12`],
        ],
        { cwd: directory },
      );
      const secrets = ['-srcstorepass', password, '-deststorepass', password];
      const from = ['-srckeystore', `${password}.key.p12`];
      const to = ['-destkeystore', `${password}.key.jks`, '-deststoretype', 'JKS'];
      await run('keytool', ['-importkeystore', '-noprompt', ...from, ...to, ...secrets], { cwd: directory });
      for (const type of ['p12', 'jks']) {
        const store = ['-keystore', `${password}.trust.${type}`, '-storetype', type === 'p12' ? 'PKCS12' : 'JKS'];
        const what = ['-importcert', '-noprompt', '-alias', 'ca', '-file', 'ca.pem', '-storepass', password];
        await run('keytool', [...what, ...store], { cwd: directory });
      }
    }
  });
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.stop()));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  /** The configuration of one server, with the paths and addresses of this machine. */
  function place(
    text: string,
    id: number,
    data: string,
    peerPorts: readonly number[],
    more: readonly string[],
  ): string {
    const password = /Store\.password=(.*)/.exec(text)?.[1] ?? 'changeit';
    const placed = text
      .replace(/^dataDir=.*/m, `dataDir=${data}`)
      .replace(/^(clientPort|secureClientPort|admin\.serverPort|metricsProvider\.httpPort)=.*/gm, '$1=0')
      .replaceAll(/(keyStore|trustStore)\.location=.*\.(jks|p12)$/gm, (_, store, type) => {
        const file = `${password}.${store === 'keyStore' ? 'key' : 'trust'}.${type}`;
        return `${store}.location=${join(directory, file)}`;
      })
      .replace('/etc/zk/jaas.conf', join(directory, 'jaas.conf'))
      .replaceAll(
        /^server\.(\d)=.*$/gm,
        (_, n) => `server.${n}=127.0.0.1:${peerPorts[2 * n - 2]}:${peerPorts[2 * n - 1]}`,
      );
    writeFileSync(join(data, 'myid'), String(id));
    return [placed, ...more].join('\n');
  }

  async function startAll(text: string, title: string): Promise<void> {
    const peerPorts = await findFreePorts(6);
    const count = text.includes('\nserver.1=') ? 3 : 1;
    const starts = Array.from({ length: count }, async (_, i) => {
      const data = join(directory, title.replaceAll(/\W/g, ''), String(i + 1));
      mkdirSync(data, { recursive: true });
      // Listens on loopback only during tests.
      const more = [
        'clientPortAddress=127.0.0.1',
        'secureClientPortAddress=127.0.0.1',
        'admin.serverAddress=127.0.0.1',
      ];
      const own = more.filter((line) => {
        const [key = ''] = line.split('=');
        return (
          !text.includes(`\n${key}=`) && (key !== 'secureClientPortAddress' || text.includes('\nsecureClientPort='))
        );
      });
      const file = place(text, i + 1, data, peerPorts, own);
      const server = await startServer(readZooCfg({ text: file, file: 'zoo.cfg', workingDirectory: dirname(data) }));
      servers.push(server);
      await server.serving;
    });
    await Promise.all(starts);
  }

  async function visit(server: RunningServer, { port, withTls, login }: Visit): Promise<Client> {
    const address = port === 'secure' ? server.secureAddress! : server.address;
    return await connect(`127.0.0.1:${address.port}`, {
      ...(withTls ? { tls: { ca: authority.certificate, cert: client.certificate, key: client.key } } : {}),
      ...(login === undefined ? {} : { sasl: digestMd5(login) }),
    });
  }

  test.each(Object.entries(FOREIGN_SETUPS))(
    '%s: starts, identifies its clients, and serves one tree',
    async (title, text) => {
      await startAll(text, title);
      const visits = VISITS[title]!;
      for (const [i, each] of visits.entries()) {
        const [writing, reading] = [servers[0]!, servers.at(-1)!];
        await using writer = await visit(writing, each);
        expect((await writer.whoAmI()).map(({ user }) => user)).toContain(each.id);
        await writer.create(`/visit-${i}`, 'x');
        await using reader = await visit(reading, each);
        await reader.sync();
        expect(await reader.exists(`/visit-${i}`)).not.toBeNull();
      }
      // A client without a certificate or password has no access.
      const stranger = visits.find(({ login, withTls }) => withTls || login !== undefined)!;
      const wrong = stranger.login === undefined ? {} : { sasl: digestMd5({ ...stranger.login, password: 'wrong' }) };
      const address = stranger.port === 'secure' ? servers[0]!.secureAddress! : servers[0]!.address;
      const options = { ...wrong, ...(stranger.withTls ? { tls: { ca: authority.certificate } } : {}) };
      await expect(connect(`127.0.0.1:${address.port}`, { ...options, connectTimeoutMs: 2000 })).rejects.toThrow();
    },
  );
});
