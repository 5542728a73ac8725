import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { acl } from '@meerkat/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CertificateAuthority } from '../../packages/client/src/testing/certificates.ts';
import { describeWith } from '../harness/peers.ts';
import { freePort, ServerProcess } from '../harness/server-process.ts';
import { CliSite, describeCli, type Ended } from './harness.ts';

describeCli('the connection of a command', (site) => {
  let home: string;
  const withProfiles = () => ({ env: { HOME: home, MEERKAT_SERVER: '' } });

  beforeAll(async () => {
    home = site.directory();
    await site.client.create('/secret', 'of ann', { acl: [acl.digest('ann', 'pw')] });
    await site.client.createParents('/app/config', 'on');
    writeFileSync(join(home, 'auth.txt'), 'digest:ann:pw\n');
    const directory = join(home, '.config/meerkat');
    mkdirSync(directory, { recursive: true });
    const profiles = {
      default: 'app',
      profiles: { app: { server: site.address, chroot: '/app' }, ann: { server: site.address } },
    };
    writeFileSync(join(directory, 'profiles.json'), JSON.stringify(profiles));
    writeFileSync(join(directory, 'secrets.json'), JSON.stringify({ ann: { auth: ['@~/auth.txt'] } }));
    chmodSync(join(directory, 'secrets.json'), 0o600);
  });

  test('uses credentials from --auth, a file, the environment or a profile', async () => {
    const stranger = await site.run(['get', '/secret']);
    expect(stranger).toMatchObject({ exitCode: 14, stdout: '' });
    expect(stranger.stderr).toContain('--auth gives credentials');
    const wrong = await site.run(['get', '/secret', '--auth', 'digest:ann:guess']);
    expect(wrong.exitCode).toBe(14);
    const all = await Promise.all([
      site.run(['get', '/secret', '--auth', 'digest:eve:x', '--auth', 'digest:ann:pw']),
      site.run(['--auth', '@auth.txt', 'get', '/secret'], { cwd: home }),
      site.run(['get', '/secret'], { env: { MEERKAT_AUTH: 'digest:eve:x digest:ann:pw' } }),
      site.run(['get', '/secret', '--profile', 'ann'], { env: { HOME: home } }),
      site.run(['get', '/secret'], { env: { HOME: home, MEERKAT_SERVER: '', MEERKAT_PROFILE: 'ann' } }),
    ]);
    for (const ended of all) expect(ended).toMatchObject({ exitCode: 0, stdout: 'of ann', stderr: '' });
  });

  test('refuses a scheme that the server does not know', async () => {
    const { exitCode, stderr } = await site.run(['ls', '/', '--auth', 'nix:x']);
    expect(exitCode).toBe(4);
    expect(stderr).toContain('check --auth');
  });

  test('defaults to the default profile and its chroot', async () => {
    expect(await site.run(['get', '/config'], withProfiles())).toMatchObject({ stdout: 'on', stderr: '' });
    expect(await site.run(['ls', '/', '--chroot', '/app'])).toMatchObject({ stdout: 'config\n' });
    expect(await site.run(['ls', '/', '--server', `${site.address}/app`])).toMatchObject({ stdout: 'config\n' });
    const missing = await site.run(['ls', '/', '--chroot', '/nowhere']);
    expect(missing).toMatchObject({ exitCode: 10 });
  });

  test('lists and checks profiles, and never shows a secret', async () => {
    const list = await site.run(['profiles', '-o', 'ndjson'], withProfiles());
    expect(
      list.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([
      { name: 'app', default: true, server: site.address, chroot: '/app', tls: false, credentials: [] },
      { name: 'ann', default: false, credentials: [`@${home}/auth.txt`] },
    ]);
    const check = await site.run(['profiles', '--check', '-o', 'json'], withProfiles());
    expect(check).toMatchObject({ exitCode: 0, stderr: '' });
    expect(JSON.parse(check.stdout)).toMatchObject([
      { name: 'app', exitCode: 0, failure: null },
      { name: 'ann', exitCode: 0, failure: null },
    ]);
    const unknown = await site.run(['profiles', 'nix'], withProfiles());
    expect(unknown).toMatchObject({ exitCode: 2, stdout: '' });
    expect(unknown.stderr).toContain('it has app, ann');
  });

  test('has a session of --session-timeout', async () => {
    const command = site.start(['wait', '--exists', '/never', '--session-timeout', '12.345s']);
    while (!(await site.server.fourLetterWord('cons')).includes('to=12345')) {
      expect(command.child.exitCode, command.stderr).toBeNull();
    }
    expect(await site.run(['ls', '/', '--session-timeout', 'soon'])).toMatchObject({ exitCode: 2, stdout: '' });
  });
});

describe('a connection that fails', () => {
  const site = new CliSite('meerkat', {});
  const sockets = new Set<Socket>();
  const listeners: Server[] = [];

  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    for (const listener of listeners) listener.close();
  });

  /** @param answer sent on every connection; null for no answer */
  async function listen(answer: string | null): Promise<string> {
    const listener = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      if (answer !== null) socket.on('data', () => socket.end(answer));
    });
    listeners.push(listener);
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const address = listener.address();
    return `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  }

  const tryServer = (server: string, ...more: string[]): Promise<Ended> =>
    site.run(['ls', '/', '--server', server, '--connect-timeout', '3s', ...more]);

  test('is reported with every address, the reason and what to check; the exit code is 3', async () => {
    const closed = `127.0.0.1:${await freePort()}`;
    const cases: readonly (readonly [server: string, words: readonly string[]])[] = [
      [closed, [`${closed}: connection refused`, 'check that the server runs there']],
      ['nosuchhost.invalid', ['nosuchhost.invalid:2181: the name could not be looked up', 'check its spelling']],
      [await listen('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'), ['does not speak ZooKeeper']],
      [await listen(null), ['no answer in time']],
      [`${closed},nosuchhost.invalid`, [`${closed}: connection refused`, 'nosuchhost.invalid:2181: the name']],
    ];
    const all = await Promise.all(cases.map(([server]) => tryServer(server)));
    for (const [index, { exitCode, stdout, stderr }] of all.entries()) {
      expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: '' });
      for (const word of cases[index]?.[1] ?? []) expect(stderr).toContain(word);
      expect(stderr).toMatch(/^meerkat: no server answered within /);
    }
    const json = await tryServer(closed, '-o', 'json');
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: 'CONNECTFAILED', exitCode: 3, path: null } });
  });

  test('because its address is invalid is reported without trying; the exit code is 2', async () => {
    for (const [server, word] of [
      ['127.0.0.1:x', 'the port is "x"'],
      ['127.0.0.1/a/', 'chroot'],
      [',', 'server'],
    ] as const) {
      const { exitCode, stderr } = await tryServer(server);
      expect({ server, exitCode }).toEqual({ server, exitCode: 2 });
      expect(stderr).toContain(word);
    }
  });
});

describeWith(['apache', 'openssl'], 'a command with TLS and SASL (apache)', () => {
  const site = new CliSite('meerkat', {});
  let authority: CertificateAuthority;
  let strict: ServerProcess;
  let lenient: ServerProcess;
  let files: {
    readonly ca: string;
    readonly cert: string;
    readonly key: string;
    readonly both: string;
    readonly eveKey: string;
  };

  beforeAll(async () => {
    authority = new CertificateAuthority();
    const trustStorePath = authority.path;
    const { path: keyStorePath } = authority.issue('server', { subjectAltName: 'IP:127.0.0.1' });
    const { path: otherPath } = authority.issue('other-server', { subjectAltName: 'DNS:zk.example' });
    [strict, lenient] = await Promise.all([
      ServerProcess.start('apache', { tls: { keyStorePath, trustStorePath }, saslUsers: { bob: 'builder' } }),
      ServerProcess.start('apache', { tls: { keyStorePath: otherPath, trustStorePath, clientAuth: 'none' } }),
    ]);
    const directory = site.directory();
    const write = (name: string, text: string): string => {
      writeFileSync(join(directory, name), text);
      return join(directory, name);
    };
    const [ann, eve] = [authority.issue('ann'), authority.issue('eve')];
    files = {
      ca: write('ca.pem', authority.cert),
      cert: write('ann.pem', ann.cert),
      key: write('ann.key', ann.key),
      both: ann.path,
      eveKey: write('eve.key', eve.key),
    };
    writeFileSync(join(directory, 'bob.txt'), 'bob:builder\n');
  });
  afterAll(async () => {
    await Promise.all([strict?.dispose(), lenient?.dispose()]);
    authority[Symbol.dispose]();
  });

  const secure = (server: ServerProcess): readonly string[] => ['--server', `127.0.0.1:${server.securePort}`];
  const hurried = ['--connect-timeout', '5s'];

  test('presents its certificate, and is identified by it', async () => {
    const { ca, cert, key, both } = files;
    const mutual = [...secure(strict), '--tls-ca', ca, '--tls-cert', cert, '--tls-key', key];
    const created = await site.run(['create', '/of-ann', 'x', '--acl', 'x509:CN=ann,O=Meerkat:cdrwa', ...mutual]);
    expect(created).toMatchObject({ exitCode: 0, stderr: '' });
    // One file with certificate and key, named by the environment.
    const env = { MEERKAT_SERVER: `127.0.0.1:${strict.securePort}`, MEERKAT_TLS_CA: ca, MEERKAT_TLS_CERT: both };
    expect(await site.run(['get', '/of-ann'], { env })).toMatchObject({ exitCode: 0, stdout: 'x' });
    const stranger = await site.run(['get', '/of-ann', '--server', `127.0.0.1:${strict.port}`]);
    expect(stranger.exitCode).toBe(14);
  });

  test('checks the server name, or accepts any server on demand', async () => {
    const named = await site.run([
      'ls',
      '/',
      ...secure(lenient),
      '--tls-ca',
      files.ca,
      '--tls-server-name',
      'zk.example',
    ]);
    expect(named).toMatchObject({ exitCode: 0, stdout: 'zookeeper\n', stderr: '' });
    expect(await site.run(['ls', '/', ...secure(lenient), '--tls-insecure'])).toMatchObject({ exitCode: 0 });
  });

  test('reports why the handshake fails', async () => {
    const { ca, cert, key, eveKey } = files;
    const [name, unknown, without, plain, tls, mismatch] = await Promise.all([
      site.run(['ls', '/', ...secure(lenient), ...hurried, '--tls-ca', ca]),
      site.run(['ls', '/', ...secure(lenient), ...hurried, '--tls', '--tls-server-name', 'zk.example']),
      site.run(['ls', '/', ...secure(strict), ...hurried, '--tls-ca', ca]),
      site.run(['ls', '/', ...secure(strict), ...hurried]),
      site.run(['ls', '/', '--server', `127.0.0.1:${strict.port}`, ...hurried, '--tls-ca', ca]),
      site.run(['ls', '/', ...secure(strict), '--tls-ca', ca, '--tls-cert', cert, '--tls-key', eveKey]),
    ]);
    for (const { exitCode, stdout } of [name, unknown, without, plain, tls]) {
      expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: '' });
    }
    expect(name.stderr).toMatch(/TLS handshake failed.*127\.0\.0\.1/s);
    expect(unknown.stderr).toMatch(/TLS handshake failed.*certificate/s);
    expect(without.stderr).toMatch(/TLS handshake failed/);
    expect(plain.stderr).toContain('speaks TLS only on this port');
    expect(tls.stderr).toContain('check that the port is the secure one');
    expect(mismatch.exitCode).toBe(2);
    expect(mismatch.stderr).toContain(`${eveKey}): the key is that of another certificate`);
    expect(
      await site.run(['ls', '/', ...secure(strict), '--tls-ca', ca, '--tls-cert', cert, '--tls-key', key]),
    ).toMatchObject({
      exitCode: 0,
    });
  });

  test('is identified by the user of --sasl', async () => {
    const server = ['--server', `127.0.0.1:${strict.port}`];
    const created = await site.run([
      'create',
      '/of-bob',
      'x',
      '--acl',
      'sasl:bob:cdrwa',
      '--sasl',
      'bob:builder',
      ...server,
    ]);
    expect(created).toMatchObject({ exitCode: 0, stderr: '' });
    const [stranger, fromFile, fromEnvironment, wrong] = await Promise.all([
      site.run(['get', '/of-bob', ...server]),
      site.run(['get', '/of-bob', '--sasl', `@${join(files.ca, '../bob.txt')}`, ...server]),
      site.run(['get', '/of-bob', ...server], { env: { MEERKAT_SASL: 'bob:builder' } }),
      site.run(['get', '/of-bob', '--sasl', 'bob:wrong', ...server]),
    ]);
    expect(stranger.exitCode).toBe(14);
    for (const ended of [fromFile, fromEnvironment]) expect(ended).toMatchObject({ exitCode: 0, stdout: 'x' });
    expect(wrong.exitCode).toBe(4);
    expect(wrong.stderr).toContain('check --auth, --sasl');
    expect(wrong.stderr).not.toContain('wrong');
  });
});
