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
import { describeWith } from './harness/peers.ts';
import { Op, RawClient } from './harness/raw-client.ts';
import { OPEN_ACL, record } from './harness/record-builder.ts';
import { freePort, SERVER_KINDS, type ServerKind, ServerProcess } from './harness/server-process.ts';

/** Commands, and one that there is not: an ensemble's are compared in `ensemble/four-letter-words.test.ts`. */
const COMMANDS =
  `configuration conf connections cons dirs dump environment get_trace_mask gtmk hash initial_configuration is_read_only
  last_snapshot lead leader monitor observers orst ruok server_stats set_trace_mask set_trace_mask?traceMask=7 set_trace_mask?traceMask=x
  srvr stat stats crst srst voting_view wchc wchp wchs watches watches_by_path watch_summary zabstate nope`.split(
    /\s+/,
  );

/** As text, without what differs from run to run. */
function normalize(text: string): string {
  return text
    .replaceAll(/("(?:version|zookeeper\.version|initial_configuration)" : )".*"/g, '$1')
    .replaceAll(/("(?:data_dir|data_log_dir|zxid)" : )"[^"]*"/g, '$1')
    .replaceAll(/(: )(-?[\d.]+(?:E-?\d+)?)/g, (_all, colon: string, value: string) => {
      return `${colon}${value.includes('.') ? 'double' : 'integer'}`;
    });
}

/** Names of all fields, with their types; the order inside `server_stats` is that of a hash table in Java, and of metrics too. */
function shapeOf(text: string, isOrdered: boolean): unknown {
  const fields = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value === null ? null : typeof value;
    if (Array.isArray(value)) return value.map(fields);
    const entries = Object.entries(value).map(([key, field]) => {
      return [key, key === 'server_stats' ? Object.fromEntries(Object.entries(field as object).toSorted()) : field];
    });
    return (isOrdered ? entries : entries.toSorted()).map(([key, field]) => [key, fields(field)]);
  };
  return fields(JSON.parse(text));
}

/** Certificates for the admin ports, and for who asks them. */
const certificates = mkdtempSync(join(tmpdir(), 'interop-admin-tls-'));
const { ca: CA, keys: KEYS, root: ROOT, ann: ANN } = writeCertificates(certificates);
afterAll(() => rmSync(certificates, { recursive: true }));

/** The keys that Apache's server has for TLS at its admin port. */
const UNIFIED = {
  'admin.portUnification': true,
  'ssl.quorum.keyStore.location': KEYS,
  'ssl.quorum.keyStore.type': 'PEM',
  'ssl.quorum.trustStore.location': CA,
  'ssl.quorum.trustStore.type': 'PEM',
};

/** What comes back through `openssl s_client`. */
async function throughOpenssl(port: number, request: readonly string[], ...more: readonly string[]): Promise<string> {
  const words = ['s_client', '-quiet', '-verify_return_error', '-CAfile', CA, '-connect', `127.0.0.1:${port}`, ...more];
  const child = spawn('openssl', words, { stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdin.on('error', () => {});
  child.stdin.write([...request, 'Host: 127.0.0.1', 'Connection: close', '', ''].join('\r\n'));
  let text = '';
  for await (const chunk of child.stdout) text += String(chunk);
  return text;
}

describeWith(['apache', 'openssl'], 'the admin port of a server on its own', () => {
  const answers = new Map<ServerKind, Map<string, string>>();
  const methods = new Map<ServerKind, Map<string, number>>();
  const secured = new Map<ServerKind, string>();

  beforeAll(async () => {
    await Promise.all(
      SERVER_KINDS.map(async (kind) => {
        await using server = await ServerProcess.start(kind, { hasAdmin: true, config: UNIFIED });
        const client = await RawClient.connect(server.port, { timeoutMs: 40_000 });
        await client.demand(Op.create, record().ustring('/e').buffer('x').acls(OPEN_ACL).int(1).build());
        await client.demand(Op.getData, record().ustring('/e').bool(true).build());
        const quotas = [
          ['/app', 'count=7,bytes=1000', 'count=1,bytes=0'],
          ['/app/part', 'count=5,bytes=-1=;byteHardLimit=300;countHardLimit=-1', 'count=2,bytes=3'],
          ['/other', 'count=-1,bytes=9', 'count=1,bytes=1'],
        ] as const;
        for (const [path, limits, use] of quotas) {
          const text = (name: string, data: string): Promise<unknown> =>
            client.demand(Op.create, record().ustring(name).buffer(data).acls(OPEN_ACL).int(0).build());
          await text(path, 'x');
          await text(`/zookeeper/quota${path}`, '');
          await text(`/zookeeper/quota${path}/zookeeper_limits`, limits);
          await text(`/zookeeper/quota${path}/zookeeper_stats`, use);
        }
        const texts = new Map<string, string>();
        for (const name of COMMANDS) texts.set(name, await server.askAdmin(`/commands/${name}`));
        answers.set(kind, texts);
        const codes = new Map<string, number>();
        for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'POST']) {
          const { status } = await fetch(`http://127.0.0.1:${server.adminPort}/commands/ruok`, { method });
          codes.set(method, status);
        }
        methods.set(kind, codes);
        secured.set(kind, await throughOpenssl(server.adminPort, ['GET /commands/ruok HTTP/1.1']));
        await client.close();
      }),
    );
  });
  afterAll(() => answers.clear());

  test.each(COMMANDS)("answers %s with the fields of Apache's, in their order and of their types", (name) => {
    const ours = answers.get('meerkat')?.get(name) ?? '';
    const theirs = answers.get('apache')?.get(name) ?? '';
    if (name === 'monitor') {
      const names = (text: string): string[] => Object.keys(JSON.parse(text) as object);
      const missing = names(theirs).filter(
        (key) => !names(ours).includes(key) && !/(read|write)_per_namespace$/.test(key),
      );
      expect(missing).toEqual([]);
      const limits = (text: string): object =>
        Object.fromEntries(
          Object.entries(JSON.parse(text) as object)
            .filter(([key]) => /_quota_\w+_limit_per_namespace$/.test(key))
            .toSorted(),
        );
      expect(limits(ours)).toEqual(limits(theirs));
      expect(limits(ours)).toMatchObject({ app_quota_count_limit_per_namespace: 12 });
      expect(names(ours).filter((key) => /_quota_\w+_usage_per_namespace$/.test(key))).toHaveLength(4);
      expect(ours).toMatch(/"avg_latency" : \d+\.\d/);
      expect(ours).not.toMatch(/"znode_count" : \d+\./);
      return;
    }
    const isOrdered = !/server_stats|srvr|stats?$/.test(name);
    if (name === 'dump') {
      expect(ours.replaceAll(/"\d+"/g, 'number')).toMatch(
        /^\{\n {2}"expiry_time_to_session_ids" : \{\n {4}number : \[ \d{17,} \]\n {2}\},/,
      );
      expect(Object.keys(JSON.parse(ours) as object)).toEqual(Object.keys(JSON.parse(theirs) as object));
      return;
    }
    if (/watches|wch[cp]/.test(name)) {
      expect(ours.replaceAll(/\d{17,}/g, 'id')).toBe(theirs.replaceAll(/\d{17,}/g, 'id'));
      return;
    }
    expect(shapeOf(ours, isOrdered)).toEqual(shapeOf(theirs, isOrdered));
    const withoutEnvironment = (text: string): string => (name === 'environment' ? '' : normalize(text));
    const sorted = (text: string): string =>
      isOrdered
        ? text
        : text
            .split('\n')
            .map((line) => line.replace(/,$/, ''))
            .toSorted()
            .join('\n');
    expect(sorted(withoutEnvironment(ours)).replaceAll(/"remote_socket_address" : ".*"/g, '')).toBe(
      sorted(withoutEnvironment(theirs)).replaceAll(/"remote_socket_address" : ".*"/g, ''),
    );
  });

  test("answers by TLS on the same port as Apache's, and counts who comes without", () => {
    const ours = secured.get('meerkat') ?? '';
    const theirs = secured.get('apache') ?? '';
    const parts = (text: string): unknown => [
      /^HTTP\/1\.1 \d+/.exec(text)?.[0],
      /^strict-transport-security: .*$/im.exec(text)?.[0].toLowerCase(),
      text.slice(text.indexOf('\r\n\r\n')),
    ];
    expect(parts(ours)).toEqual(parts(theirs));
    expect(theirs).toContain('max-age');
    for (const kind of SERVER_KINDS) {
      expect(answers.get(kind)?.get('monitor'), kind).toMatch(/"insecure_admin_count" : [1-9]\d*,/);
    }
  });

  test("answers other methods with Apache's codes", () => {
    expect(Object.fromEntries(methods.get('meerkat') ?? [])).toEqual(Object.fromEntries(methods.get('apache') ?? []));
  });
});

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

  test('is alive and ready, and says so in words', async () => {
    expect(await server.askAdmin('/livez')).toBe('ok');
    const ready = await fetch(`${base}/readyz?verbose`);
    expect(ready.status).toBe(200);
    expect(await ready.text()).toMatch(/^\[\+\]event-loop ok: .*\n(\[\+\].*\n)+readyz check passed\n$/);
  });

  test('shows no secret of the configuration', async () => {
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

  test('gives a snapshot to whoever has every permission of the root, and to nobody else', async () => {
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
    // The address is that of the connection, whatever a header says (CVE-2024-51504).
    const ofAddress = record().int(2).int(31).ustring('ip').ustring('10.9.9.9');
    const both = ofAddress.int(16).ustring('world').ustring('anyone').build();
    await client.demand(Op.setACL, record().ustring('/').raw(both).int(-1).build());
    const headers = { authorization: 'ip', 'x-forwarded-for': '10.9.9.9', forwarded: 'for=10.9.9.9' };
    expect((await fetch(`${base}/commands/snapshot?streaming=true`, { headers })).status).toBe(403);
    // Read, but not all of them, for everybody.
    const acl = record().ustring('/').int(1).int(15).ustring('world').ustring('anyone').int(-1).build();
    await client.demand(Op.setACL, acl);
    expect((await ask('digest a:b')).status).toBe(403);
    expect((await ask('digest super:test')).status).toBe(200);
    await client.close();
  });

  test('restores a snapshot, ours or one of Apache, for whoever has every permission of the root', async () => {
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
    // Written by Apache's server 3.8.0; its end does not say the zxid.
    const theirs = new URL('../packages/core/src/storage/fixtures/apache-3.8.0/snapshot.a', import.meta.url);
    expect((await post(readFileSync(theirs), 'digest super:test')).status).toBe(200);
    expect([await exists('/then'), await exists('/a')]).toEqual([-101, 0]);
    expect(server.output).toContain('was restored in place of all there was');
  });

  test('takes a certificate for who asks, and none for nobody', async () => {
    const ask = (...words: readonly string[]): Promise<string> => {
      return throughOpenssl(server.adminPort, ['GET /commands/archive HTTP/1.1', 'Authorization: x509'], ...words);
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
    // Without TLS the word says nothing.
    expect((await fetch(`${base}/commands/archive`, { headers: { authorization: 'x509' } })).status).toBe(401);
  });

  test('is asked by the command with TLS, by whom its certificate names', async () => {
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

  test('has a port for Prometheus with TLS, for who has a certificate', async () => {
    const request = ['GET /metrics HTTP/1.1'];
    expect(await throughOpenssl(metricsPort, request, '-cert', ANN, '-key', ANN)).toContain('# TYPE znode_count gauge');
    expect(await throughOpenssl(metricsPort, request)).toBe('');
  });

  // The second is made of the digits of an IPv6 address, and is a name all the same.
  test.each([
    ['evil.example', 421],
    ['bad.cafe.de', 421],
    ['127.0.0.1.de', 421],
    ['127.0.0.1', 200],
    ['[::1]', 200],
    ['localhost', 200],
  ])('is called %s: answers with %i', async (host, code) => {
    const line = await firstLineOf(
      server.adminPort,
      `GET /commands/ruok HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    );
    expect(line).toContain(`HTTP/1.1 ${code} `);
  });

  test('closes connections with endless headers, and takes no body', async () => {
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

  test('gives a compressed snapshot and takes it back, from an address that a proxy names', async () => {
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

  test('in use by another program is a warning, and clients are served', async () => {
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

/** The first line of what a server answers to some bytes. */
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
