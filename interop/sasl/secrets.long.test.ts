import { createPrivateKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { AuthFailedError, connect, digestMd5, kerberos } from '@meerkat/client';
import { TicketSource } from '@meerkat/client/kerberos';
import { CertificateAuthority } from '@meerkat/server';
import { expect, test, vi } from 'vitest';
import { fourLetterWord, freePort, ServerProcess } from '../harness/server-process.ts';
import { keytabOf } from './keytab.ts';

/** Each is used in exactly one place of the configuration. */
const SECRETS = {
  user: 'SECRET-of-a-user',
  superUser: 'SECRET-of-the-super-user',
  superPassword: 'SECRET-super-password',
  server: 'SECRET-of-a-server',
  session: 'SECRET-of-sessions-that-is-long-enough',
  superDigest: 'SECRETsuperDigest0123456789=',
  adminPassword: 'SECRET-of-a-store',
};

const WORDS = ['conf', 'envi', 'cons', 'dump', 'mntr', 'stat', 'srvr', 'dirs', 'crst', 'wchs', 'wchc', 'wchp', 'hash'];

test('no secret is in the log, in what four-letter words and admin commands answer, or in errors', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'interop-secrets-'));
  const path = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const module = 'org.apache.zookeeper.server.auth.DigestLoginModule required';
  const jaas = `
Server { ${module} user_bob="${SECRETS.user}" user_super="${SECRETS.superUser}"; };
QuorumServer { ${module} user_zk="${SECRETS.server}"; };
QuorumLearner { ${module} username="zk" password="${SECRETS.server}"; };`;
  const adminPort = await freePort();
  const config = {
    'admin.enableServer': true,
    'admin.serverPort': adminPort,
    'admin.serverAddress': '127.0.0.1',
    'session.secretFile': path('session-secrets', SECRETS.session),
    'quorum.auth.enableSasl': true,
    'SASLAuthenticationProvider.superPassword': SECRETS.superPassword,
    'DigestAuthenticationProvider.superDigest': `super:${SECRETS.superDigest}`,
    'ssl.keyStore.password': SECRETS.adminPassword,
    'audit.enable': true,
  };
  const seen: string[] = [];
  try {
    await using server = await ServerProcess.start('meerkat', { jaas, config });
    const login = (password: string) =>
      connect(`127.0.0.1:${server.port}`, { sasl: digestMd5({ username: 'bob', password }) });
    await using client = await login(SECRETS.user);
    await client.create('/a', 'x');
    await expect(login('wrong')).rejects.toThrow(AuthFailedError);
    for (const word of WORDS) seen.push(await fourLetterWord(server.port, word));
    // It opens after the client port.
    const commands = await vi.waitFor(() => fetch(`http://127.0.0.1:${adminPort}/commands`), { timeout: 60_000 });
    const index = await commands.text();
    for (const [, name] of index.matchAll(/"\/commands\/(\w+)"/g)) {
      seen.push(await (await fetch(`http://127.0.0.1:${adminPort}/commands/${name}`)).text());
    }
    expect(seen.length).toBeGreaterThan(WORDS.length + 5);
    await server.stop();
    seen.push(server.output);

    // An invalid configuration is reported with its values.
    server.reconfigure({
      'java.security.auth.login.config': path('broken.conf', jaas.replaceAll('";', '"')),
      'session.secretFile': path('weak', SECRETS.session.slice(0, 20)),
      'DigestAuthenticationProvider.superDigest': SECRETS.superDigest,
    });
    const failed: unknown = await server.restart().catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(Error);
    expect(String(failed)).toMatch(/broken.conf, line 2/);
    seen.push(String(failed));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  for (const text of seen) expect(text).not.toContain('SECRET');
});

test('store passwords, keytab keys and private keys do not appear either', async () => {
  const STORE = 'SECRET-of-the-stores';
  const KEY = 'SECRET-of-a-keytab-with-32-bytes';
  const directory = mkdtempSync(join(tmpdir(), 'interop-secrets-'));
  const path = (name: string, bytes: string | Buffer): string => {
    writeFileSync(join(directory, name), bytes);
    return join(directory, name);
  };
  const authority = new CertificateAuthority();
  const { key, certificate } = authority.issue('server', { names: ['IP:127.0.0.1'] });
  const privateKey = createPrivateKey(key);
  const sealed = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: STORE });
  const keytab = path('server.keytab', keytabOf('zookeeper', 'localhost', KEY));
  const module = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true';
  const jaas = `Server { ${module} keyTab="${keytab}" principal="zookeeper/localhost"; };`;
  const adminPort = await freePort();
  const stores = { location: path('key.pem', `${sealed}${certificate}`), password: STORE };
  const config = {
    'admin.enableServer': true,
    'admin.serverPort': adminPort,
    'admin.serverAddress': '127.0.0.1',
    'admin.portUnification': true,
    'admin.ssl.keyStore.location': stores.location,
    'admin.ssl.keyStore.password': stores.password,
    'metricsProvider.className': 'org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider',
    'metricsProvider.httpHost': '127.0.0.1',
    'metricsProvider.httpsPort': await freePort(),
    'metricsProvider.ssl.keyStore.location': stores.location,
    'metricsProvider.ssl.keyStore.password': stores.password,
    'metricsProvider.ssl.want.client.auth': false,
    'metricsProvider.ssl.need.client.auth': false,
  };
  const seen: string[] = [];
  try {
    await using server = await ServerProcess.start('meerkat', { jaas, config });
    for (const word of WORDS) seen.push(await fourLetterWord(server.port, word));
    const commands = await vi.waitFor(() => fetch(`http://127.0.0.1:${adminPort}/commands`), { timeout: 60_000 });
    for (const [, name] of (await commands.text()).matchAll(/"\/commands\/(\w+)"/g)) {
      seen.push(await (await fetch(`http://127.0.0.1:${adminPort}/commands/${name}`)).text());
    }
    expect(seen.length).toBeGreaterThan(WORDS.length + 5);
    // Clients that cannot log in, and printed representations of their options.
    const options = { keytab, config: path('krb5.conf', '[realms]\nR = {\n kdc = 127.0.0.1:1\n}\n') };
    const place = `localhost:${server.port}`;
    const failed: unknown = await connect(place, { sasl: kerberos(options), connectTimeoutMs: 1000 }).catch((e) => e);
    expect(String(failed)).toMatch(/no key distribution center of the realm R answers/);
    const source = new TicketSource(options);
    const refused: unknown = await source.get('zookeeper/localhost').catch((error: unknown) => error);
    seen.push(inspect(failed, { depth: 9 }), inspect(source, { depth: 9 }), inspect(refused, { depth: 9 }));
    await expect(
      connect(place, { sasl: digestMd5({ username: 'bob', password: 'SECRET of bob' }), connectTimeoutMs: 1000 }),
    ).rejects.toThrow(AuthFailedError);
    await server.stop();
    seen.push(server.output);

    // Invalid stores and keytabs are reported.
    for (const [changes, message] of [
      [{ 'admin.ssl.keyStore.password': 'SECRET-that-is-wrong' }, /admin.ssl.keyStore.location: .*key.pem: .*password/],
      [
        {
          'java.security.auth.login.config': path('other.conf', jaas.replace('zookeeper/localhost', 'zookeeper/other')),
        },
        /the keytab .*server.keytab has no key of zookeeper\/other; it is for zookeeper\/localhost@R/,
      ],
    ] as const) {
      server.reconfigure({ 'admin.ssl.keyStore.password': STORE, ...changes });
      const stopped: unknown = await server.restart().catch((error: unknown) => error);
      expect(String(stopped)).toMatch(message);
      seen.push(String(stopped), server.output);
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  const inside = (privateKey.export({ format: 'jwk' }) as { readonly d: string }).d;
  for (const text of seen) {
    for (const secret of [
      'SECRET',
      Buffer.from('SECRET').toString('hex'),
      Buffer.from(KEY).toString('base64').slice(0, 8),
    ])
      expect(text).not.toContain(secret);
    expect(text).not.toContain(inside);
    expect(text).not.toContain('PRIVATE KEY');
  }
});
