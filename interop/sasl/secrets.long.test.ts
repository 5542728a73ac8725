import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AuthFailedError, connect, digestMd5 } from '@meerkat/client';
import { expect, test, vi } from 'vitest';
import { fourLetterWord, freePort, ServerProcess } from '../harness/server-process.ts';

/** Each stands in one place of the configuration, and nowhere else. */
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
    // It opens a moment after the client port.
    const commands = await vi.waitFor(() => fetch(`http://127.0.0.1:${adminPort}/commands`), { timeout: 60_000 });
    const index = await commands.text();
    for (const [, name] of index.matchAll(/"\/commands\/(\w+)"/g)) {
      seen.push(await (await fetch(`http://127.0.0.1:${adminPort}/commands/${name}`)).text());
    }
    expect(seen.length).toBeGreaterThan(WORDS.length + 5);
    await server.stop();
    seen.push(server.output);

    // A configuration that cannot be used is told of with its values.
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
