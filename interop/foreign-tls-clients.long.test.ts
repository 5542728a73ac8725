import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { CertificateAuthority } from '@meerkat/server';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ConsoleProcess } from './harness/console-process.ts';
import { CLASS_PATH, SHORT_JAVA } from './harness/java.ts';
import { describeWith } from './harness/peers.ts';
import { ServerProcess } from './harness/server-process.ts';

const run = promisify(execFile);

describeWith(['apache', 'kazoo', 'openssl'], 'foreign clients with TLS at our server', () => {
  const directory = mkdtempSync(join(tmpdir(), 'foreign-tls-'));
  const authority = new CertificateAuthority();
  const write = (name: string, text: string): string => {
    const path = join(directory, name);
    writeFileSync(path, text);
    return path;
  };
  let server: ServerProcess;

  beforeAll(async () => {
    const names = ['IP:127.0.0.1', 'DNS:localhost'];
    const keyStorePath = write('server.pem', authority.issue('server', { names, keyType: 'rsa' }).keyStore);
    const trustStorePath = write('ca.pem', authority.certificate);
    const client = authority.issue('kazoo', { subject: { O: 'Test' } });
    write('client.key', client.key);
    write('client.crt', client.certificate);
    write('client.pem', client.keyStore);
    const config = { 'client.portUnification': true };
    server = await ServerProcess.start('meerkat', { tls: { keyStorePath, trustStorePath }, config });
  });
  afterAll(async () => {
    await server?.dispose();
    rmSync(directory, { recursive: true });
  });

  test.each(['secure', 'unified'])(
    'kazoo has a session at the %s port, and permissions by its certificate',
    async (port) => {
      await using setUp = new ConsoleProcess('/usr/bin/python3', [
        fileURLToPath(new URL('./kazoo/tls.py', import.meta.url)),
        `localhost:${port === 'secure' ? server.securePort : server.port}`,
        directory,
      ]);
      await setUp.waitFor(/done/);
      expect(await setUp.end()).toBe(0);
      await shell('deleteall', '/kazoo-tls');
    },
  );

  test("Apache's shell has a session with a certificate, and sees its subject", async () => {
    expect(await shell('whoami')).toContain('x509: CN=kazoo,O=Test');
    await shell('create', '/of-shell', 'text');
    expect(await shell('get', '/of-shell')).toContain('text');
  });

  test("the log says so when the trust store of Apache's shell lacks the authority", async () => {
    write('stranger.pem', new CertificateAuthority().certificate);
    await using _ = new ConsoleProcess('java', shellArguments('stranger.pem', 'ls', '/'));
    await expect
      .poll(() => server.output)
      .toMatch(/WARN {2}client 127\.0\.0\.1:\d+ refused: it refuses the certificate of this server/);
  });

  test.each(['-tls1_2', '-tls1_3'])(
    'openssl %s gets an answer with a certificate, and none without',
    async (version) => {
      const base = `openssl s_client -connect 127.0.0.1:${server.securePort} -CAfile ca.pem ${version} -verify_return_error`;
      const ask = (more: string): Promise<{ stdout: string; stderr: string }> =>
        run('/bin/sh', ['-c', `(printf ruok; sleep 0.2) | ${base} ${more} 2>&1`], { cwd: directory }).catch(
          (error) => error,
        );
      expect((await ask('-quiet -cert client.crt -key client.key')).stdout).toMatch(/imok$/);
      // Waits for the server to close, and so for the alert.
      const { stdout } = await ask('-ign_eof');
      expect(stdout).not.toContain('imok');
      // Node.js may close the connection before its alert is sent.
      expect(stdout).toMatch(/alert (certificate required|handshake failure)|unexpected eof/);
    },
  );

  test("a certificate with its authority's name, as in the C client's tests, is refused with a log line", async () => {
    write('none.cnf', 'subjectKeyIdentifier=none\nauthorityKeyIdentifier=none\n');
    const make = '-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /O=Same';
    for (const command of [
      `req -x509 ${make} -keyout same.key -out same.crt`,
      `req -new ${make} -keyout own.key -out own.csr`,
      'x509 -req -in own.csr -CA same.crt -CAkey same.key -CAcreateserial -extfile none.cnf -out own.crt',
    ]) {
      await run('/bin/sh', ['-c', `openssl ${command}`], { cwd: directory });
    }
    const stores = { keyStorePath: join(directory, 'server.pem'), trustStorePath: join(directory, 'same.crt') };
    await using own = await ServerProcess.start('meerkat', { tls: stores });
    const client = `openssl s_client -connect 127.0.0.1:${own.securePort} -cert own.crt -key own.key -quiet`;
    await run('/bin/sh', ['-c', `printf ruok | ${client} 2>&1 || true`], { cwd: directory });
    await expect
      .poll(() => own.output)
      .toMatch(
        /its certificate is refused: no authority of the trust store has issued it: its subject is its issuer, too/,
      );
  });

  test('openssl resumes a session', async () => {
    const ask = (more: string): Promise<{ stdout: string }> =>
      run(
        '/bin/sh',
        [
          '-c',
          `(printf ruok; sleep 0.2) | openssl s_client -connect 127.0.0.1:${server.securePort} -CAfile ca.pem -tls1_2 -cert client.crt -key client.key ${more} 2>&1`,
        ],
        { cwd: directory },
      );
    await ask('-sess_out session');
    expect((await ask('-sess_in session')).stdout).toMatch(/^Reused, TLSv1\.2/m);
  });

  /** Runs one command of Apache's shell. */
  async function shell(...command: readonly string[]): Promise<string> {
    const { stdout, stderr } = await run('java', shellArguments('ca.pem', ...command));
    return stdout + stderr;
  }

  /** It speaks TLS 1.2 only. */
  function shellArguments(trustStore: string, ...command: readonly string[]): string[] {
    const properties = {
      'zookeeper.clientCnxnSocket': 'org.apache.zookeeper.ClientCnxnSocketNetty',
      'zookeeper.client.secure': true,
      'zookeeper.ssl.keyStore.location': join(directory, 'client.pem'),
      'zookeeper.ssl.trustStore.location': join(directory, trustStore),
    };
    const options = Object.entries(properties).map(([key, value]) => `-D${key}=${value}`);
    const main = ['org.apache.zookeeper.ZooKeeperMain', '-server', `localhost:${server.securePort}`, ...command];
    return [...SHORT_JAVA, '-cp', CLASS_PATH, ...options, ...main];
  }
});
