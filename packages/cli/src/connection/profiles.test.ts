import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findProfile, readProfiles } from './profiles.ts';
import { profilesFile } from './profiles-file.ts';

let home: string;
let directory: string;
let env: Readonly<Record<string, string>>;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'profiles-'));
  directory = join(home, '.config/meerkat');
  mkdirSync(directory, { recursive: true });
  env = { HOME: home };
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function write(name: string, content: unknown, mode = 0o600): string {
  const path = join(directory, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  chmodSync(path, mode);
  return path;
}

describe('the place of the profiles', () => {
  test('is ~/.config/meerkat, unless XDG_CONFIG_HOME or MEERKAT_CONFIG_DIR name another', () => {
    expect(profilesFile({ HOME: '/h' }).path).toBe('/h/.config/meerkat/profiles.json');
    expect(profilesFile({ HOME: '/h', XDG_CONFIG_HOME: '/x' }).path).toBe('/x/meerkat/profiles.json');
    const own = profilesFile({ HOME: '/h', XDG_CONFIG_HOME: '/x', MEERKAT_CONFIG_DIR: '~/m' });
    expect(own).toMatchObject({ path: '/h/m/profiles.json', secretsPath: '/h/m/secrets.json', exists: false });
  });

  test('is not changed by variables that are empty', () => {
    const { path } = profilesFile({ HOME: '/h', XDG_CONFIG_HOME: '', MEERKAT_CONFIG_DIR: '' });
    expect(path).toBe('/h/.config/meerkat/profiles.json');
  });
});

describe('profiles', () => {
  test('are empty when there is no file', () => {
    expect(readProfiles(env)).toMatchObject({ default: null, profiles: [] });
    expect(findProfile(null, env)).toBeNull();
    expect(() => findProfile('prod', env)).toThrow(/there is no profile "prod" in .*profiles\.json: it has none/);
  });

  test('get their secrets from the file beside them', () => {
    write('profiles.json', {
      default: 'prod',
      profiles: { local: { server: 'a' }, prod: { server: 'zk1,zk2', chroot: '/app', tls: { key: 'k', cert: 'c' } } },
    });
    write('secrets.json', { prod: { auth: ['digest:ann:x'], sasl: 'ann:y', tlsPassphrase: 'z' } });
    expect(findProfile('local', env)).toMatchObject({ name: 'local', server: 'a' });
    expect(findProfile(null, env)).toMatchObject({
      name: 'prod',
      server: 'zk1,zk2',
      chroot: '/app',
      auth: ['digest:ann:x'],
      sasl: 'ann:y',
      tls: { passphrase: 'z' },
    });
    expect(() => findProfile('pord', env)).toThrow('there is no profile "pord"');
    expect(() => findProfile('pord', env)).toThrow('it has local, prod');
  });

  test('name files relative to themselves, or to the home directory', () => {
    const tls = { ca: 'ca.pem', cert: '~/me.pem', key: '/etc/me.key' };
    write('profiles.json', { profiles: { prod: { server: 'a', tls } } });
    write('secrets.json', { prod: { auth: ['@auth.txt', '@~/auth.txt'], sasl: '@/etc/sasl' } });
    expect(findProfile('prod', env)).toMatchObject({
      tls: { ca: join(directory, 'ca.pem'), cert: join(home, 'me.pem'), key: '/etc/me.key' },
      auth: [`@${directory}/auth.txt`, `@${home}/auth.txt`],
      sasl: '@/etc/sasl',
    });
  });

  test.skipIf(process.platform === 'win32').each([0o640, 0o604, 0o622, 0o777])(
    'are not used while others can use the secrets (mode %o)',
    (mode) => {
      write('profiles.json', { profiles: { prod: { server: 'a' } } });
      const path = write('secrets.json', {}, mode);
      expect(() => readProfiles(env)).toThrow(`${path} can be used by others: "chmod 600 ${path}"`);
    },
  );

  test.each([
    ['no JSON', '{\n  "profiles": {\n    "a": { "server": "x" },\n  }\n}', ':4:3: no JSON: '],
    ['JSON that ends too early', '{\n  "profiles": {', ':2:16: no JSON: '],
    [
      'a field that is unknown',
      { profiles: { a: { server: 'x', sever: 'y' } } },
      ': profiles.a.sever: there is no such',
    ],
    ['a field that is missing', { profiles: { a: {} } }, ': profiles.a.server: it is missing'],
    ['a wrong type', { profiles: { a: { server: 1 } } }, ': profiles.a.server: expected string, found 1'],
    [
      'an unknown field of tls',
      { profiles: { a: { server: 'x', tls: { cafile: 'y' } } } },
      ': profiles.a.tls.cafile: ',
    ],
    ['a secret', { profiles: { a: { server: 'x', auth: [] } } }, ': profiles.a.auth: it belongs into secrets.json'],
    ['a bad name', { profiles: { 'a b': { server: 'x' } } }, ': profiles.a b: a name is made of letters'],
    ['an unknown default', { default: 'b', profiles: { a: { server: 'x' } } }, ': the default "b" is not one of its'],
    ['nothing', [], ': profiles: it is missing'],
  ])('of a file with %s: the place is told', (_, content, message) => {
    const path = write('profiles.json', content);
    expect(() => readProfiles(env)).toThrow(`${path}${message}`);
  });

  test.each([
    ['a profile that is not there', { b: {} }, ': "b" is no profile of '],
    ['an unknown field', { a: { password: 'x' } }, ': a.password: there is no such field'],
    ['a passphrase for no key', { a: { tlsPassphrase: 'x' } }, ': a.tlsPassphrase: the profile has no tls.key'],
  ])('with secrets of %s: the place is told', (_, secrets, message) => {
    write('profiles.json', { profiles: { a: { server: 'x' } } });
    const path = write('secrets.json', secrets);
    expect(() => readProfiles(env)).toThrow(`${path}${message}`);
  });
});
