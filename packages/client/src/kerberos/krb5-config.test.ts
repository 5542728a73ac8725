import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { readKrb5Config, realmOfHost } from './krb5-config.ts';

const directory = mkdtempSync(join(tmpdir(), 'krb5-config-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

test('reads realms, their centers and the realms of hosts, as described by the manual of krb5.conf', () => {
  const path = write(
    'krb5.conf',
    `# a comment
[libdefaults]
    default_realm = ATHENA.MIT.EDU
    dns_lookup_kdc = no
    default_ccache_name = "FILE:/run/%{uid}"
[realms]
    ATHENA.MIT.EDU = {
        kdc = kerberos.mit.edu
        kdc = kerberos-1.mit.edu:750
        admin_server = kerberos.mit.edu
        v4_instance_convert = {
            mit = mit.edu
        }
    }
    EXAMPLE.COM = {
        kdc = [2001:db8::1]:88
    }
[domain_realm]
    mit.edu = ATHENA.MIT.EDU
    .Example.com = EXAMPLE.COM
; the end
`,
  );
  const config = readKrb5Config(path);
  expect(config).toMatchObject({
    defaultRealm: 'ATHENA.MIT.EDU',
    looksUpKdcs: false,
    defaultCacheName: 'FILE:/run/%{uid}',
  });
  expect(config.kdcs.get('ATHENA.MIT.EDU')).toEqual(['kerberos.mit.edu', 'kerberos-1.mit.edu:750']);
  expect(config.kdcs.get('EXAMPLE.COM')).toEqual(['[2001:db8::1]:88']);
  expect(realmOfHost(config, 'mit.edu')).toBe('ATHENA.MIT.EDU');
  expect(realmOfHost(config, 'a.b.mit.edu')).toBe('ATHENA.MIT.EDU');
  expect(realmOfHost(config, 'zk1.example.com')).toBe('EXAMPLE.COM');
  expect(realmOfHost(config, 'example.com')).toBe(null);
});

test('includes other files, and is empty without a file', () => {
  mkdirSync(join(directory, 'krb5.conf.d'));
  write('krb5.conf.d/realm', '[realms]\nR = {\n kdc = one\n}\n');
  write('krb5.conf.d/ignored~', '[libdefaults]\ndefault_realm = OTHER\n');
  write('first.conf', '[libdefaults]\ndefault_realm = R\n');
  const path = write('all.conf', `include ${directory}/first.conf\nincludedir ${directory}/krb5.conf.d\n`);
  const config = readKrb5Config(path);
  expect(config.defaultRealm).toBe('R');
  expect(config.kdcs.get('R')).toEqual(['one']);
  expect(readKrb5Config(join(directory, 'nowhere'))).toMatchObject({ defaultRealm: null, looksUpKdcs: true });
});

test('reads several files separated by colons, of which the first takes precedence, and reports which it was', () => {
  const first = write('one.conf', '[libdefaults]\ndefault_realm = ONE\n');
  const second = write('two.conf', '[libdefaults]\ndefault_realm = TWO\n[realms]\nTWO = {\n kdc = two\n}\n');
  const both = `${first}:${second}`;
  expect(readKrb5Config(both)).toMatchObject({ path: both, defaultRealm: 'ONE' });
  expect(readKrb5Config(both).kdcs.get('TWO')).toEqual(['two']);
  expect(readKrb5Config(join(directory, 'nowhere')).path).toMatch(/nowhere \(there is no such file\)$/);
});

test('names KDCs by DNS unless the setting says no, in any notation', () => {
  const looksUp = (value: string): boolean =>
    readKrb5Config(write('dns.conf', `[libdefaults]\ndns_lookup_kdc = ${value}\n`)).looksUpKdcs;
  for (const value of ['true', 'yes', 'y', 't', '1', 'on']) expect(looksUp(value), value).toBe(true);
  for (const value of ['false', 'No', 'n', 'f', '0', 'OFF']) expect(looksUp(value), value).toBe(false);
});
