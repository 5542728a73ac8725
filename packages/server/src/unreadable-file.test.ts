import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getgid, getuid } from 'node:process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CertificateAuthority } from './tls/certificate-authority.ts';

const NOBODY = 65534;
/** Root reads everything, so its servers run as the user nobody; any other user gets files with mode 0. */
const isRoot = getuid?.() === 0;
const user = isRoot ? NOBODY : getuid?.();
const group = isRoot ? NOBODY : getgid?.();
const RUNS = `and this process runs as user ${user} and group ${group}`;

/** Starts a server with each zoo.cfg of its argument, and prints the outcome. */
const STARTS = `
import { readZooCfg, startServer } from '${built('index.js')}';
const said = {};
for (const [name, text] of Object.entries(JSON.parse(process.argv[1]))) {
  try {
    const server = await startServer(readZooCfg({ text, file: 'zoo.cfg', workingDirectory: '/' }));
    await server.stop();
    said[name] = 'started';
  } catch (error) {
    said[name] = error.message;
  }
}
console.log(JSON.stringify(said));
`;

/** Looks at a keytab again whose rights were taken away with its renewal. */
const RENEWS = `
import { chmodSync, utimesSync, writeFileSync } from 'node:fs';
import { KeytabFile } from '${built('sasl/kerberos/keytab-file.js')}';
const [path, hex] = process.argv.slice(1);
writeFileSync(path, Buffer.from(hex, 'hex'));
const file = new KeytabFile(path);
utimesSync(path, 1, 1);
chmodSync(path, 0);
const principals = file.get(true, 10_000).principals;
console.log(JSON.stringify({ principals, fault: file.fault }));
`;

/** A keytab of one key of AES-256, zookeeper/localhost@R, in the words of MIT's documentation of the format. */
const KEYTAB = `050200000048${'0002'}000152${'0009'}${hexOf('zookeeper')}${'0009'}${hexOf('localhost')}${'00000001'}${'00000000'}01${'0012'}${'0020'}${'07'.repeat(32)}`;

function built(path: string): string {
  return fileURLToPath(new URL(`../dist/${path}`, import.meta.url));
}

function hexOf(text: string): string {
  return Buffer.from(text).toString('hex');
}

function run(script: string, ...args: readonly string[]): Record<string, unknown> {
  const options = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  const command = ['--input-type=module', '-e', script, ...args];
  const { stdout, stderr } = spawnSync(process.execPath, command, { ...options, encoding: 'utf8' });
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as Record<string, unknown>;
}

/** The user nobody must be able to read the sources. */
function canRun(): boolean {
  if (user === undefined) return false;
  return !isRoot || spawnSync(process.execPath, [built('index.js')], { uid: NOBODY, gid: NOBODY }).status === 0;
}

describe.skipIf(!canRun())('a file without permission', () => {
  const directory = mkdtempSync(join(tmpdir(), 'unreadable-'));
  const at = (...parts: readonly string[]): string => join(directory, ...parts);
  const closed = (name: string): string => at('closed', name);
  const open = (name: string): string => at('open', name);
  let said: Record<string, unknown> = {};

  const krb5 = (keyTab: string): string =>
    `com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="${keyTab}" principal="zookeeper/localhost";`;
  const module = 'org.apache.zookeeper.server.auth.DigestLoginModule required';
  const tls = {
    'ssl.keyStore.location': open('key.pem'),
    'ssl.keyStore.passwordPath': open('password'),
    'ssl.trustStore.location': open('ca.pem'),
    secureClientPort: '0',
    secureClientPortAddress: '127.0.0.1',
  };
  const jaas = 'java.security.auth.login.config';

  /** By the key of zoo.cfg in the message, or by the kind of file. */
  const CASES: Readonly<Record<string, { readonly file: string; readonly lines: Readonly<Record<string, string>> }>> = {
    [jaas]: { file: closed('jaas.conf'), lines: { [jaas]: closed('jaas.conf') } },
    'sasl.usersFile': { file: closed('users'), lines: { 'sasl.usersFile': closed('users') } },
    'java.security.krb5.conf': {
      file: closed('krb5.conf'),
      lines: { [jaas]: open('jaas.conf'), 'java.security.krb5.conf': closed('krb5.conf') },
    },
    'session.secretFile': { file: closed('secrets'), lines: { 'session.secretFile': closed('secrets') } },
    'the keytab': { file: closed('zk.keytab'), lines: { [jaas]: open('closed-keytab.conf') } },
    'ssl.keyStore.location': { file: closed('key.pem'), lines: { ...tls, 'ssl.keyStore.location': closed('key.pem') } },
    'ssl.trustStore.location': {
      file: closed('ca.pem'),
      lines: { ...tls, 'ssl.trustStore.location': closed('ca.pem') },
    },
    'ssl.keyStore.passwordPath': {
      file: closed('password'),
      lines: { ...tls, 'ssl.keyStore.passwordPath': closed('password') },
    },
    'ssl.crl.location': {
      file: closed('crl.pem'),
      lines: { ...tls, 'ssl.crl': 'true', 'ssl.crl.location': closed('crl.pem') },
    },
  };

  beforeAll(() => {
    chmodSync(directory, 0o755);
    const authority = new CertificateAuthority();
    const { key, certificate } = authority.issue('server', { names: ['IP:127.0.0.1'] });
    const files: Readonly<Record<string, string | Buffer>> = {
      'jaas.conf': `Server { ${module} user_bob="SECRET"; };`,
      'closed-keytab.conf': `Server { ${krb5(closed('zk.keytab'))} };`,
      'hidden-keytab.conf': `Server { ${krb5(at('hidden', 'zk.keytab'))} };`,
      'open-keytab.conf': `Server { ${krb5(open('zk.keytab'))} };`,
      users: 'bob:SECRET\n',
      'krb5.conf': '[libdefaults]\ndefault_realm = R\n',
      secrets: `SECRET${'s'.repeat(32)}\n`,
      'zk.keytab': Buffer.from(KEYTAB, 'hex'),
      'key.pem': `${key}${certificate}`,
      'ca.pem': authority.certificate,
      password: 'SECRET\n',
      'crl.pem': 'x',
    };
    for (const place of ['open', 'closed', 'hidden']) {
      mkdirSync(at(place));
      for (const [name, contents] of Object.entries(files)) {
        writeFileSync(at(place, name), contents);
        // As root, so that the owner alone may read it, as of a keytab that root has made.
        chmodSync(at(place, name), place !== 'closed' ? 0o644 : isRoot ? 0o600 : 0);
      }
    }
    chmodSync(at('hidden'), isRoot ? 0o700 : 0);
    mkdirSync(at('data'));
    if (isRoot) chownSync(at('data'), NOBODY, NOBODY);
    const configurations = Object.entries({
      ...Object.fromEntries(Object.entries(CASES).map(([name, { lines }]) => [name, lines])),
      hidden: { [jaas]: open('hidden-keytab.conf') },
      control: { ...tls, [jaas]: open('open-keytab.conf'), 'session.secretFile': open('secrets') },
    }).map(([name, lines]) => {
      const all = {
        clientPort: '0',
        clientPortAddress: '127.0.0.1',
        dataDir: at('data'),
        'admin.enableServer': 'false',
        ...lines,
      };
      return [
        name,
        Object.entries(all)
          .map(([key, value]) => `${key}=${value}\n`)
          .join(''),
      ] as const;
    });
    said = run(STARTS, JSON.stringify(Object.fromEntries(configurations)));
  });
  afterAll(() => {
    chmodSync(at('hidden'), 0o700);
    rmSync(directory, { recursive: true });
  });

  test.each(Object.entries(CASES))(
    'stops the start: %s, with its place, its rights, who runs the server, and what to do',
    (name, { file }) => {
      const owner = `permission denied: it is of user ${getuid?.()} and group ${getgid?.()} with mode ${isRoot ? '600' : '0'}, ${RUNS}`;
      expect(said[name]).toContain(name);
      expect(said[name]).toMatch(new RegExp(`${file}(:| cannot be read:) ${owner}`));
      expect(said[name]).toMatch(/expected a file that this process can read|correct .*, or the rights of the file$/);
      expect(said[name]).not.toContain('SECRET');
    },
  );

  test('does not stop it where it may be read', () => {
    expect(said['control']).toBe('started');
  });

  test('may be one in a directory that is closed, which is named', () => {
    const mode = isRoot ? '700' : '0';
    expect(said['hidden']).toContain(`the keytab ${at('hidden', 'zk.keytab')} cannot be read: permission denied: `);
    expect(said['hidden']).toMatch(
      new RegExp(`the directory ${at('hidden')} is of user \\d+ and group \\d+ with mode ${mode}, ${RUNS}`),
    );
  });

  test('that was a keytab until its renewal leaves the keys as they were, and is told of', () => {
    const path = at('data', 'renewed.keytab');
    const { principals, fault } = run(RENEWS, path, KEYTAB);
    expect(principals).toEqual(['zookeeper/localhost@R']);
    expect(fault).toBe(
      `the keytab ${path} cannot be read: permission denied: it is of user ${user} and group ${group} with mode 0, ${RUNS}: correct keyTab of the login's section, or the rights of the file`,
    );
  });
});
