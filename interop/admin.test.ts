import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RunningCommand } from './cli/harness.ts';
import { writeCertificates } from './harness/admin-certificates.ts';
import { throughOpenssl } from './harness/openssl-request.ts';
import { describeWith } from './harness/peers.ts';
import { Op, RawClient } from './harness/raw-client.ts';
import { OPEN_ACL, record } from './harness/record-builder.ts';
import { freePort, ServerProcess } from './harness/server-process.ts';

/** Certificates for the admin ports and their clients. */
const certificates = mkdtempSync(join(tmpdir(), 'interop-admin-tls-'));
const { ca: CA, keys: KEYS, root: ROOT, ann: ANN } = writeCertificates(certificates);
afterAll(() => rmSync(certificates, { recursive: true }));

describeWith(['openssl'], 'the admin port of Meerkat', () => {
  let server: ServerProcess;
  let base: string;
  let metricsPort: number;

  beforeAll(async () => {
    metricsPort = await freePort();
    server = await ServerProcess.start('meerkat', {
      hasAdmin: true,
      config: {
        'client.portUnification': true,
        'ssl.keyStore.location': KEYS,
        'ssl.trustStore.location': CA,
        'ssl.keyStore.password': 'hush-1',
        'admin.rateLimiterIntervalInMS': 0,
        'admin.portUnification': true,
        'admin.needClientAuth': true,
        'admin.ssl.keyStore.location': KEYS,
        'admin.ssl.trustStore.location': CA,
        'X509AuthenticationProvider.superUser': 'CN=root',
        'metricsProvider.className': 'org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider',
        'metricsProvider.httpsPort': metricsPort,
        'metricsProvider.ssl.keyStore.location': KEYS,
        'metricsProvider.ssl.trustStore.location': CA,
      },
    });
    base = `http://127.0.0.1:${server.adminPort}`;
  });
  afterAll(() => server.dispose());

  test('reports that it is alive and ready', async () => {
    expect(await server.askAdmin('/livez')).toBe('ok');
    const ready = await fetch(`${base}/readyz?verbose`);
    expect(ready.status).toBe(200);
    expect(await ready.text()).toMatch(/^\[\+\]event-loop ok: .*\n(\[\+\].*\n)+readyz check passed\n$/);
  });

  test('does not expose secrets of the configuration', async () => {
    const text = (await server.askAdmin('/commands/icfg')) + (await server.askAdmin('/commands/sysp'));
    expect(text).toContain('ssl.keyStore.password=***');
    expect(text).toContain('superDigest=***');
    expect(text).not.toMatch(/hush-1|D\/InIHSb/);
  });

  test('describes itself as an OpenAPI document with every command', async () => {
    const document = JSON.parse(await server.askAdmin('/openapi.json')) as { openapi: string; paths: object };
    expect(document.openapi).toBe('3.1.0');
    const names = [...(await server.askAdmin('/commands')).matchAll(/href="([^"]*)"/g)].map(([, path]) => path);
    expect(names.length).toBe(33);
    expect(Object.keys(document.paths)).toEqual(expect.arrayContaining(names));
  });

  test('returns a snapshot only to clients with all permissions on the root', async () => {
    const client = await RawClient.connect(server.port);
    await client.demand(Op.create, record().ustring('/kept').buffer('x').acls(OPEN_ACL).int(0).build());
    const ask = (authorization: string | null): Promise<Response> =>
      fetch(`${base}/commands/snapshot?streaming=true`, { headers: authorization === null ? {} : { authorization } });
    expect((await ask(null)).status).toBe(401);
    expect((await ask('nix')).status).toBe(401);
    expect((await ask('digest a:b c')).status).toBe(401);
    const answer = await ask('digest super:test');
    expect(answer.status).toBe(200);
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect(answer.headers.get('snapshot_size')).toBe(String(bytes.length));
    expect(answer.headers.get('last_zxid')).toMatch(/^0x[0-9a-f]+$/);
    expect(bytes.subarray(0, 4).toString()).toBe('ZKSN');
    expect(bytes.includes('/kept')).toBe(true);
    // The address is that of the connection; headers are ignored (CVE-2024-51504).
    const ofAddress = record().int(2).int(31).ustring('ip').ustring('10.9.9.9');
    const both = ofAddress.int(16).ustring('world').ustring('anyone').build();
    await client.demand(Op.setACL, record().ustring('/').raw(both).int(-1).build());
    const headers = { authorization: 'ip', 'x-forwarded-for': '10.9.9.9', forwarded: 'for=10.9.9.9' };
    expect((await fetch(`${base}/commands/snapshot?streaming=true`, { headers })).status).toBe(403);
    // Everyone has some permissions, including READ, but not all.
    const acl = record().ustring('/').int(1).int(15).ustring('world').ustring('anyone').int(-1).build();
    await client.demand(Op.setACL, acl);
    expect((await ask('digest a:b')).status).toBe(403);
    expect((await ask('digest super:test')).status).toBe(200);
    await client.close();
  });

  test("restores a snapshot, ours or Apache's, for clients with all permissions on the root", async () => {
    const post = (body: Buffer | null, authorization: string | null, method = 'POST'): Promise<Response> =>
      fetch(`${base}/commands/restore`, {
        method,
        body: body === null ? null : new Uint8Array(body),
        headers: authorization === null ? {} : { authorization },
      });
    const exists = async (path: string): Promise<number> => {
      const reader = await RawClient.connect(server.port);
      const { error } = await reader.request(Op.exists, record().ustring(path).bool(false).build());
      await reader.close();
      return error;
    };
    const client = await RawClient.connect(server.port);
    await client.demand(Op.create, record().ustring('/then').buffer('x').acls(OPEN_ACL).int(0).build());
    const headers = { authorization: 'digest super:test' };
    const snapshot = await fetch(`${base}/commands/snapshot?streaming=true`, { headers });
    const bytes = Buffer.from(await snapshot.arrayBuffer());
    await client.demand(Op.create, record().ustring('/now').buffer('x').acls(OPEN_ACL).int(0).build());
    expect((await post(bytes, null)).status).toBe(401);
    expect((await post(bytes, 'digest a:b')).status).toBe(403);
    expect((await post(null, 'digest super:test', 'GET')).status).toBe(405);
    expect((await post(null, 'digest super:test')).status).toBe(400);
    for (const damaged of [bytes.subarray(0, -1), Buffer.from('no snapshot'), flip(bytes, bytes.length >> 1)]) {
      expect((await post(damaged, 'digest super:test')).status).toBe(500);
    }
    expect(await exists('/now')).toBe(0);
    const restored = await post(bytes, 'digest super:test');
    expect([restored.status, await restored.text()]).toEqual([
      200,
      `{\n  "last_zxid" : ${Number(snapshot.headers.get('last_zxid'))},\n  "command" : "restore",\n  "error" : null\n}`,
    ]);
    expect([await exists('/then'), await exists('/now')]).toEqual([0, -101]);
    // Written by Apache's server 3.8.0; it does not end with the zxid.
    const theirs = new URL('../packages/core/src/storage/fixtures/apache-3.8.0/snapshot.a', import.meta.url);
    expect((await post(readFileSync(theirs), 'digest super:test')).status).toBe(200);
    expect([await exists('/then'), await exists('/a')]).toEqual([-101, 0]);
    expect(server.output).toContain('was restored in place of all there was');
  });

  test('authenticates a client by its certificate, and refuses one without', async () => {
    const ask = (...words: readonly string[]): Promise<string> => {
      return throughOpenssl(
        { port: server.adminPort, ca: CA },
        ['GET /commands/archive HTTP/1.1', 'Authorization: x509'],
        ...words,
      );
    };
    expect(await ask('-cert', ROOT, '-key', ROOT)).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*"last_zxid" : "0x/);
    const client = await RawClient.connect(server.port);
    await client.demand(
      Op.setACL,
      record().ustring('/').int(1).int(1).ustring('world').ustring('anyone').int(-1).build(),
    );
    await client.close();
    expect(await ask('-cert', ANN, '-key', ANN)).toContain('HTTP/1.1 403 ');
    expect(await ask()).toBe('');
    // Without TLS the scheme x509 is refused.
    expect((await fetch(`${base}/commands/archive`, { headers: { authorization: 'x509' } })).status).toBe(401);
  });

  test('is used by the command over TLS, with the identity of its certificate', async () => {
    const to = join(certificates, 'backup');
    const meerkat = async (...words: readonly string[]): Promise<string> => {
      const { exitCode, stderr } = await new RunningCommand(words, {}, false).ended;
      return `${exitCode} ${stderr}`;
    };
    const backup = ['backup', '--to', to, '--admin', `https://127.0.0.1:${server.adminPort}`];
    expect(await meerkat(...backup, '--tls-ca', CA, '--tls-cert', ROOT)).toMatch(/^0 /);
    expect(await meerkat('restore', to, '--check')).toMatch(/^0 /);
    expect(await meerkat(...backup, '--tls-ca', CA, '--tls-cert', ANN)).toMatch(/^\d+ .*Not authorized/s);
    expect(await meerkat(...backup, '--tls-cert', ROOT)).toMatch(/^3 .*its certificate is not trusted; --tls-ca/s);
    expect(await meerkat(...backup, '--tls-ca', CA)).toMatch(/^3 .*--tls-cert/s);
    const drain = ['drain', '--server', `127.0.0.1:${server.port}`, '--http-port', String(server.adminPort), '--https'];
    expect(await meerkat(...drain, '--tls-ca', CA, '--tls-cert', ANN)).toMatch(/^\d+ .*Not authorized/s);
    expect(await meerkat(...drain, '--tls-ca', CA, '--tls-cert', ROOT)).toMatch(/^0 /);
    expect(await meerkat(...drain, '--tls-ca', CA, '--tls-cert', ROOT, '--undo')).toMatch(/^0 /);
  });

  test('has a Prometheus port with TLS that requires a certificate', async () => {
    const request = ['GET /metrics HTTP/1.1'];
    expect(await throughOpenssl({ port: metricsPort, ca: CA }, request, '-cert', ANN, '-key', ANN)).toContain(
      '# TYPE znode_count gauge',
    );
    expect(await throughOpenssl({ port: metricsPort, ca: CA }, request)).toBe('');
  });

  // The second consists of hex digits like an IPv6 address, but is a name.
  test.each([
    ['evil.example', 421],
    ['bad.cafe.de', 421],
    ['127.0.0.1.de', 421],
    ['127.0.0.1', 200],
    ['[::1]', 200],
    ['localhost', 200],
  ])('called as host %s: answers with %i', async (host, code) => {
    const line = await firstLineOf(
      server.adminPort,
      `GET /commands/ruok HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    );
    expect(line).toContain(`HTTP/1.1 ${code} `);
  });

  test('closes connections with endless headers, and accepts no body', async () => {
    const ends = await Promise.all([
      firstLineOf(server.adminPort, `GET /livez HTTP/1.1\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`),
      firstLineOf(server.adminPort, `GET /livez HTTP/1.1\r\nHost: localhost\r\n${'X: a\r\n'.repeat(5000)}\r\n`),
      firstLineOf(server.adminPort, 'nonsense\r\n\r\n'),
      firstLineOf(
        server.adminPort,
        `POST /commands/ruok HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nsomething`,
      ),
    ]);
    expect(ends.map((line) => line.split(' ')[1])).toEqual(['431', '431', '400', '405']);
    expect(await server.askAdmin('/livez')).toBe('ok');
  });

  test('returns and restores a compressed snapshot, with an address from a proxy header', async () => {
    const config = { 'snapshot.compression.method': 'gz', 'IPAuthenticationProvider.usexforwardedfor': true };
    await using second = await ServerProcess.start('meerkat', { config, hasAdmin: true });
    const client = await RawClient.connect(second.port);
    await client.demand(Op.create, record().ustring('/kept').buffer('x').acls(OPEN_ACL).int(0).build());
    const acl = record().int(1).int(31).ustring('ip').ustring('10.9.9.9').build();
    await client.demand(Op.setACL, record().ustring('/').raw(acl).int(-1).build());
    await client.close();
    const ask = (command: string, forwarded: string, body?: Uint8Array): Promise<Response> =>
      fetch(`http://127.0.0.1:${second.adminPort}/commands/${command}`, {
        method: body === undefined ? 'GET' : 'POST',
        ...(body === undefined ? {} : { body: new Uint8Array(body) }),
        headers: { authorization: 'ip', 'x-forwarded-for': forwarded },
      });
    expect((await ask('snapshot?streaming=true', '10.9.9.9, 10.9.9.8')).status).toBe(403);
    const answer = await ask('snapshot?streaming=true', '10.9.9.8, 10.9.9.9');
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect(answer.headers.get('snapshot_size')).toBe(String(bytes.length));
    expect(gunzipSync(bytes).includes('/kept')).toBe(true);
    expect((await ask('restore', '10.9.9.9', bytes)).status).toBe(200);
  });

  test('in use by another program only causes a warning, and clients are served', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const address = other.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const config = { 'admin.enableServer': true, 'admin.serverPort': port };
    await using second = await ServerProcess.start('meerkat', { config });
    await expect.poll(() => second.output).toContain('it is in use');
    expect(second.output).toMatch(
      /WARN {2}cannot listen on 127\.0\.0\.1:\d+ for admin commands: it is in use; set another admin\.serverPort/,
    );
    expect(await second.fourLetterWord('srvr')).toContain('Mode: standalone');
    other.close();
  });

  test('is not ready without a quorum, although it is alive', async () => {
    const ports: number[] = [];
    while (ports.length < 6) ports.push(await freePort());
    const port = await freePort();
    const directory = mkdtempSync(join(tmpdir(), 'interop-ready-'));
    mkdirSync(join(directory, 'data'));
    writeFileSync(join(directory, 'data', 'myid'), '1');
    const lines = [
      ...['dataDir=data', 'clientPort=0', 'clientPortAddress=127.0.0.1', 'initLimit=5', 'syncLimit=2', 'tickTime=500'],
      ...[1, 2, 3].map((id) => `server.${id}=127.0.0.1:${ports[id - 1]}:${ports[id + 2]}`),
      `admin.serverPort=${port}`,
    ];
    writeFileSync(join(directory, 'zoo.cfg'), lines.join('\n'));
    const meerkat = fileURLToPath(new URL('../packages/cli/bin/meerkat.js', import.meta.url));
    const child = spawn(process.execPath, [meerkat, 'server', 'zoo.cfg'], { cwd: directory, stdio: 'ignore' });
    try {
      const ask = async (path: string): Promise<string> => {
        const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => null);
        return answer === null ? '' : `${answer.status} ${await answer.text()}`;
      };
      await expect.poll(() => ask('/livez')).toBe('200 ok');
      expect(await ask('/readyz')).toMatch(
        /^503 [\s\S]*\[-\]quorum failed: looking for a leader; no other server is connected\n/,
      );
      expect(await ask('/commands/ruok')).toContain('"error" : null');
      expect(await ask('/commands/srvr')).toContain(
        '"error" : "This ZooKeeper instance is not currently serving requests"',
      );
    } finally {
      child.kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    }
  });
});

function flip(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at]! ^= 4;
  return copy;
}

/** The first line of the server's answer to some bytes. */
function firstLineOf(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    let text = '';
    const done = (): void => {
      socket.destroy();
      resolve(text.split('\r\n')[0] ?? '');
    };
    socket.on('data', (chunk) => {
      text += chunk.toString();
      if (text.includes('\r\n')) done();
    });
    socket.on('error', done);
    socket.on('close', done);
  });
}
