import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CommandFailure } from '../run/command-failure.ts';
import { CommandExit } from '../run/exit-code.ts';
import { type Io, PROCESS_IO } from '../run/io.ts';
import { settleConnection } from './connection-settings.ts';
import type { ConnectionWords } from './connection-words.ts';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'settings-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function settle(words: ConnectionWords, env: Io['env'] = {}) {
  return settleConnection(words, { ...PROCESS_IO, env: { HOME: directory, MEERKAT_CONFIG_DIR: directory, ...env } });
}

async function serverOf(words: ConnectionWords, env: Io['env'] = {}) {
  return (await settle(words, env)).options.servers;
}

async function failureOf(words: ConnectionWords, env: Io['env'] = {}): Promise<CommandFailure> {
  const error: unknown = await settle(words, env).catch((reason: unknown) => reason);
  if (!(error instanceof CommandFailure)) throw new Error('it did not fail as it should', { cause: error });
  return error;
}

/** Two profiles with credentials, `one` by default. */
function writeProfiles(): void {
  write('profiles.json', {
    default: 'one',
    profiles: {
      one: { server: 'one', chroot: '/one', sessionTimeout: '3s' },
      two: { server: 'two', sessionTimeout: 'soon', readOnly: true },
    },
  });
  write('secrets.json', { one: { auth: ['digest:one:1'], sasl: 'one:1' }, two: { auth: ['digest:two:2'] } });
}

function write(name: string, content: unknown): string {
  const path = join(directory, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  chmodSync(path, 0o600);
  return path;
}

describe('the service', () => {
  test('is the one on this machine when no other is named', async () => {
    expect(await settle({})).toEqual({
      options: { servers: '127.0.0.1:2181', connectTimeoutMs: 5000, auth: [], canBeReadOnly: false },
      sasl: null,
    });
    expect(await serverOf({}, { MEERKAT_SERVER: '', MEERKAT_PROFILE: '' })).toBe('127.0.0.1:2181');
  });

  test('is that of the command line, else of the environment, else of the profile', async () => {
    writeProfiles();
    expect(await serverOf({})).toBe('one');
    expect(await serverOf({}, { MEERKAT_PROFILE: 'one' })).toBe('one');
    expect(await serverOf({}, { MEERKAT_SERVER: 'env' })).toBe('env');
    expect(await serverOf({ server: 'word' }, { MEERKAT_SERVER: 'env' })).toBe('word');
    expect(await serverOf({ profile: 'one' }, { MEERKAT_SERVER: 'env', MEERKAT_PROFILE: 'two' })).toBe('one');
    expect(await serverOf({ profile: 'one', server: 'word' })).toBe('word');
    expect((await settle({ chroot: '/word' })).options.chroot).toBe('/word');
    expect((await settle({})).options).toMatchObject({ chroot: '/one', sessionTimeoutMs: 3000 });
  });

  test('needs no file when it is named by its address', async () => {
    write('profiles.json', 'damaged');
    expect(await serverOf({ server: 'word' }, { MEERKAT_PROFILE: 'one' })).toBe('word');
    expect(await serverOf({}, { MEERKAT_SERVER: 'env' })).toBe('env');
    expect((await failureOf({})).exitCode).toBe(CommandExit.invocation);
  });
});

describe('credentials', () => {
  const authOf = async (words: ConnectionWords, env: Io['env'] = {}) => (await settle(words, env)).options.auth;
  const digest = (auth: string) => ({ scheme: 'digest', auth });

  test('of a profile go to no other service', async () => {
    writeProfiles();
    const none = { options: { auth: [] }, sasl: null };
    expect(await settle({})).toMatchObject({ options: { auth: [digest('one:1')] }, sasl: { username: 'one' } });
    expect(await settle({ server: 'word' })).toMatchObject(none);
    expect(await settle({ server: 'word' }, { MEERKAT_PROFILE: 'one' })).toMatchObject(none);
    expect(await settle({}, { MEERKAT_SERVER: 'env' })).toMatchObject(none);
  });

  test('of the environment are not given to a profile that the command line names', async () => {
    writeProfiles();
    const env = { MEERKAT_AUTH: 'digest:env:e ip:x', MEERKAT_SASL: 'env:e' };
    expect(await settle({ profile: 'one' }, env)).toMatchObject({
      options: { auth: [digest('one:1')] },
      sasl: { username: 'one' },
    });
    expect(await authOf({}, env)).toEqual([digest('env:e'), { scheme: 'ip', auth: 'x' }]);
    expect(await authOf({ auth: ['digest:word:w'] }, env)).toEqual([digest('word:w')]);
    expect((await settle({ sasl: 'word:a:b' }, env)).sasl).toEqual({ username: 'word', password: 'a:b' });
  });

  test('are read from a file, without the line feed at its end', async () => {
    const path = write('auth', 'digest:ann:secret\n');
    expect(await authOf({ auth: [`@${path}`] })).toEqual([digest('ann:secret')]);
    expect(await authOf({}, { MEERKAT_AUTH: '@~/auth' })).toEqual([digest('ann:secret')]);
    const missing = await failureOf({ sasl: '@/nonexistent/file' });
    expect(missing).toMatchObject({ exitCode: CommandExit.file });
    expect(missing.message).toBe(
      'cannot read the credentials of --sasl from /nonexistent/file: there is no such file or directory',
    );
  });

  test('that cannot be understood are not printed', async () => {
    for (const words of [{ auth: ['secret'] }, { sasl: 'secret' }]) {
      const { exitCode, message } = await failureOf(words);
      expect(exitCode).toBe(CommandExit.invocation);
      expect(message).not.toContain('secret');
    }
  });
});

test('a server without a quorum is taken when --read-only or the profile says so', async () => {
  writeProfiles();
  expect((await settle({ readOnly: true })).options.canBeReadOnly).toBe(true);
  expect((await settle({ profile: 'two', sessionTimeout: '1s' })).options.canBeReadOnly).toBe(true);
  expect((await settle({ profile: 'one' })).options.canBeReadOnly).toBe(false);
});

describe('times', () => {
  test('have units, and their mistakes name where they stand', async () => {
    writeProfiles();
    const { options } = await settle({ sessionTimeout: '1.5m', connectTimeout: '250ms' });
    expect(options).toMatchObject({ sessionTimeoutMs: 90_000, connectTimeoutMs: 250 });
    expect((await settle({ timeout: '2s' })).options.connectTimeoutMs).toBe(2000);
    expect((await settle({ timeout: '1m' })).options.connectTimeoutMs).toBe(5000);
    expect((await failureOf({ connectTimeout: '0s' })).message).toContain('--connect-timeout: expected a time');
    expect((await failureOf({ profile: 'two' })).message).toContain('sessionTimeout of the profile "two": expected');
    expect((await failureOf({ sessionTimeout: '25d' })).message).toContain(
      '--session-timeout: a session has a timeout',
    );
  });
});

describe('TLS', () => {
  const tlsOf = async (words: ConnectionWords, env: Io['env'] = {}) => (await settle(words, env)).options.tls;

  test('is spoken when something asks for it', async () => {
    expect(await tlsOf({})).toBeUndefined();
    expect(await tlsOf({ tls: true })).toEqual({});
    expect(await tlsOf({ tlsInsecure: true })).toEqual({ rejectUnauthorized: false });
    expect(await tlsOf({ tlsServerName: 'zk' })).toEqual({ servername: 'zk' });
    expect(await tlsOf({}, { MEERKAT_TLS: '1' })).toEqual({});
    expect(await tlsOf({}, { MEERKAT_TLS: '0' })).toBeUndefined();
    expect(await tlsOf({ tls: true }, { MEERKAT_TLS: '0' })).toEqual({});
    expect((await failureOf({}, { MEERKAT_TLS: 'yes' })).message).toBe('MEERKAT_TLS: expected 1 or 0, found "yes"');
  });

  test('of a profile can be switched off by the environment, and is not asked of a service that is named', async () => {
    write('profiles.json', {
      default: 'a',
      profiles: { a: { server: 'a', tls: { insecure: true, serverName: 'x' } } },
    });
    expect(await tlsOf({})).toEqual({ rejectUnauthorized: false, servername: 'x' });
    expect(await tlsOf({ tlsServerName: 'y' })).toEqual({ rejectUnauthorized: false, servername: 'y' });
    expect(await tlsOf({}, { MEERKAT_TLS: 'false' })).toBeUndefined();
    expect(await tlsOf({ profile: 'a' }, { MEERKAT_TLS: 'false' })).toEqual({
      rejectUnauthorized: false,
      servername: 'x',
    });
    expect(await tlsOf({ server: 'b' })).toBeUndefined();
  });

  test('with files that are not there, or no certificates, is refused before a server is tried', async () => {
    const text = write('text', 'hello');
    const damaged = write('damaged', '-----BEGIN CERTIFICATE-----\nhello\n-----END CERTIFICATE-----\n');
    expect(await failureOf({ tlsCa: '/nonexistent' })).toMatchObject({
      exitCode: CommandExit.file,
      message: 'cannot read /nonexistent of --tls-ca: there is no such file or directory',
    });
    expect((await failureOf({}, { MEERKAT_TLS_CA: '~/text' })).message).toBe(
      `${text} of MEERKAT_TLS_CA is no PEM file`,
    );
    expect((await failureOf({ tlsCert: damaged })).message).toContain('--tls-key names it');
    expect((await failureOf({ tlsKey: damaged })).message).toContain('--tls-cert names it');
    const { exitCode, message } = await failureOf({ tlsCert: damaged, tlsKey: damaged });
    expect(exitCode).toBe(CommandExit.invocation);
    expect(message).toContain(`the certificates cannot be used (${damaged}): `);
  });
});
