import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import type { TraceEvent } from '@meerkat/core';
import { findFreePorts } from '@meerkat/testing';
import { afterAll, expect, test } from 'vitest';
import { readZooCfg } from '../config/zoo-cfg.ts';
import type { RunningServer } from '../running-server.ts';
import { startServer } from '../server.ts';
import { CertificateAuthority } from './certificate-authority.ts';

const PAGE = new URL('../../../../docs/security.md', import.meta.url);
const directory = mkdtempSync(join(tmpdir(), 'hardened-'));
const servers: RunningServer[] = [];
/** Why connections were refused. */
const refusals: string[] = [];
const REFUSAL = 'between servers: its certificate is refused: no authority of the trust store has issued it';

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  rmSync(directory, { recursive: true });
});

test('the hardened zoo.cfg of the page runs as three servers, which refuse clients without a certificate', async () => {
  const ofClients = new CertificateAuthority('clients');
  const ofServers = new CertificateAuthority('servers');
  const serverKey = ofServers.issue('server', { names: ['IP:127.0.0.1'] });
  writeFileSync(join(directory, 'server.pem'), serverKey.keyStore);
  writeFileSync(join(directory, 'clients-ca.pem'), ofClients.certificate);
  writeFileSync(join(directory, 'servers-ca.pem'), ofServers.certificate);
  const [, text = ''] =
    /## A hardened zoo\.cfg[\s\S]*?```properties\n([\s\S]*?)```/.exec(readFileSync(PAGE, 'utf8')) ?? [];
  const ports = await findFreePorts(6);
  for (const id of [1, 2, 3]) {
    const data = join(directory, String(id));
    mkdirSync(data);
    writeFileSync(join(data, 'myid'), String(id));
    const lines = text
      .replaceAll('/etc/meerkat', directory)
      .replace('dataDir=/var/lib/meerkat', `dataDir=${data}`)
      .replace('secureClientPort=2281', 'secureClientPort=0\nsecureClientPortAddress=127.0.0.1')
      .replaceAll(/zk(\d)\.example\.org:2888:3888/g, (_, n) => `127.0.0.1:${ports[2 * n - 2]}:${ports[2 * n - 1]}`);
    const configuration = readZooCfg({ text: lines, file: 'zoo.cfg', workingDirectory: directory });
    expect(configuration.warnings).toEqual([]);
    const emit = (event: TraceEvent): void => {
      if (event.kind === 'connection-refused') refusals.push(event.reason);
    };
    servers.push(await startServer(configuration, { trace: { emit } }));
  }
  await Promise.all(servers.map((server) => server.serving));

  const ca = ofServers.certificate;
  const { certificate: cert, key } = ofClients.issue('ann');
  for (const { secureAddress } of servers) {
    const { port } = secureAddress!;
    expect(await ask({ port, ca, cert, key }, 'srvr')).toMatch(/Mode: (leader|follower)/);
    expect(await ask({ port, ca, cert, key }, 'mntr')).toContain('not in the whitelist');
    expect(await ask({ port, ca }, 'srvr')).toBe('');
    // A server's certificate makes no client.
    expect(await ask({ port, ca, cert: serverKey.certificate, key: serverKey.key }, 'srvr')).toBe('');
  }
  // Nor a client's certificate a server.
  for (const port of ports) {
    const socket = open({ port, ca, cert, key }).resume();
    await closed(socket);
  }
  await expect.poll(() => refusals.filter((reason) => reason === REFUSAL)).toHaveLength(6);
});

/** The answer to a four-letter word; '' when the connection is closed without one. */
async function ask(options: ConnectionOptions, word: string): Promise<string> {
  const socket = open(options);
  let answer = '';
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString();
  });
  socket.write(word);
  await closed(socket);
  return answer;
}

function open(options: ConnectionOptions): TLSSocket {
  const socket = connect({ host: '127.0.0.1', ...options });
  socket.on('error', () => {});
  return socket;
}

/** Gracefully or by a reset. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}
