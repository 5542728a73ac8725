import type { PeerAddress } from '@meerkat/core';
import { describe, expect, test } from 'vitest';
import { DEFAULT_AUTH_OPTIONS, makeAuthenticator, makeDigestId } from './authenticator.ts';
import { formatIp, parseIp } from './ip-address.ts';

const remote: PeerAddress = { ip: Uint8Array.of(10, 1, 2, 3), host: '10.1.2.3', port: 4000 };
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
// From ZooKeeper's administrator's guide: the digest of super:test.
const SUPER = 'super:D/InIHSb7yEEbrWz8b9l71RjZJU=';

describe('a provider that is not known', () => {
  const unknown = makeAuthenticator({ ...DEFAULT_AUTH_OPTIONS, unknownProviders: ['com.example.Badge'] });

  test('keeps a server from starting whose ACLs may rely on it, and no other', () => {
    expect(unknown.refusalOf(new Set(['world', 'digest', 'ip']))).toBeNull();
    expect(unknown.refusalOf(new Set(['world', 'badge']))).toMatch(
      /^ACLs of this directory name the scheme "badge", and authProvider names com\.example\.Badge, which this server does not have/,
    );
  });

  test('is ignored when no authProvider is configured: its ACLs are kept as they are, and grant nothing', () => {
    expect(makeAuthenticator(DEFAULT_AUTH_OPTIONS).refusalOf(new Set(['badge']))).toBeNull();
  });
});

describe('digest', () => {
  const authenticator = makeAuthenticator(DEFAULT_AUTH_OPTIONS);

  test('credentials become user:base64(sha1(user:password))', () => {
    expect(authenticator.authenticate('digest', bytes('super:test'), remote, null)).toEqual([
      { scheme: 'digest', id: SUPER },
    ]);
  });

  test('a password may contain colons, and an offer without one is accepted as ZooKeeper does', () => {
    // printf 'ann:a:b' | openssl sha1 -binary | base64
    expect(makeDigestId('ann:a:b', 'sha1')).toBe('ann:EYXFEV9aApPD3KKCbSfRkMYZNy4=');
    expect(authenticator.authenticate('digest', bytes('ann'), remote, null)?.[0]?.id).toMatch(/^ann:.{28}$/);
  });

  test('an empty offer is one, no offer is refused', () => {
    expect(authenticator.authenticate('digest', bytes(''), remote, null)).toEqual([
      { scheme: 'digest', id: ':2jmj7l5rSw0yVb/vlWAYkK/YBwk=' },
    ]);
    expect(authenticator.authenticate('digest', null, remote, null)).toBeNull();
    expect(authenticator.authenticate('ip', null, remote, null)).toEqual([{ scheme: 'ip', id: '10.1.2.3' }]);
  });

  test('the super digest grants super besides the digest identity', () => {
    const withSuper = makeAuthenticator({ ...DEFAULT_AUTH_OPTIONS, superDigest: SUPER });
    expect(withSuper.authenticate('digest', bytes('super:test'), remote, null)).toEqual([
      { scheme: 'super', id: '' },
      { scheme: 'digest', id: SUPER },
    ]);
    expect(withSuper.authenticate('digest', bytes('super:wrong'), remote, null)).toHaveLength(1);
  });

  test('an ACL id has two parts between colons, counted as Java counts them', () => {
    for (const id of [SUPER, 'a:b', ':b', 'a:b:']) expect(authenticator.isValidAclId('digest', id), id).toBe(true);
    for (const id of ['', 'a', 'a:', ':', 'a:b:c']) expect(authenticator.isValidAclId('digest', id), id).toBe(false);
  });

  test('identities match by equality and count as authenticated', () => {
    expect(authenticator.matches('digest', SUPER, SUPER)).toBe(true);
    expect(authenticator.matches('digest', SUPER, 'super:x')).toBe(false);
    expect(authenticator.isAuthenticatedScheme('digest')).toBe(true);
    expect(authenticator.userName({ scheme: 'digest', id: SUPER })).toBe('super');
  });

  test('disabled, the scheme does not exist and there is no super user', () => {
    const off = makeAuthenticator({ ...DEFAULT_AUTH_OPTIONS, digestEnabled: false, superDigest: SUPER });
    expect(off.authenticate('digest', bytes('super:test'), remote, null)).toBeNull();
    expect(off.isValidAclId('digest', SUPER)).toBe(false);
  });

  test('another algorithm changes the hash', () => {
    // printf 'super:test' | openssl sha256 -binary | base64
    expect(makeDigestId('super:test', 'sha256')).toBe('super:wjySwxg860UATFtciuZ1lpzrCHrPeov6SPu/ZD56uig=');
  });
});

describe('ip', () => {
  const authenticator = makeAuthenticator(DEFAULT_AUTH_OPTIONS);

  test('every connection is its address from the start, in the text that Java prints', () => {
    expect(authenticator.initialIdentities(remote, null)).toEqual([{ scheme: 'ip', id: '10.1.2.3' }]);
    const v6 = { ip: parseIp('::1')!, host: '::1', port: 1 };
    expect(authenticator.initialIdentities(v6, null)).toEqual([{ scheme: 'ip', id: '0:0:0:0:0:0:0:1' }]);
  });

  test('networks of both families match by their first bits, never across families', () => {
    const matching = [
      ['10.1.2.3', '10.1.2.3'],
      ['10.1.2.3', '10.1.0.0/16'],
      ['10.1.2.3', '0.0.0.0/0'],
      ['10.1.2.3', '10.1.2.2/31'],
      ['10.1.2.3', '+10.1.002.3'],
      ['10.1.2.3', '10.1.2.4/+08'],
      ['10.0.0.1', '10.-0.-0.1'],
      ['10.1.2.3', '99.1.2.3/-0'],
      ['2001:db8:0:0:0:0:0:1', '2001:db8::/32'],
      ['0:0:0:0:0:0:0:1', '::1'],
    ] as const;
    const other = [
      ['10.1.2.3', '10.1.2.4'],
      ['10.1.2.3', '10.2.0.0/16'],
      ['10.1.2.3', '10.1.2.2/32'],
      ['10.1.2.3', '::/0'],
      ['2001:db9:0:0:0:0:0:1', '2001:db8::/32'],
    ] as const;
    for (const [id, acl] of matching) expect(authenticator.matches('ip', id, acl), `${id} in ${acl}`).toBe(true);
    for (const [id, acl] of other) expect(authenticator.matches('ip', id, acl), `${id} in ${acl}`).toBe(false);
  });

  test('an ACL id is an address with at most as many bits as it has', () => {
    // Numbers are read as Java reads them; seen with Apache's 3.8.0.
    for (const id of ['+1.2.3.4', '1.2.3.0000000000004', '1.2.3.-0', '1.2.3.4/+8', '1.2.3.4/0008', '1.2.3.4/-0'])
      expect(authenticator.isValidAclId('ip', id), id).toBe(true);
    for (const id of ['1.2.3.4', '1.2.3.4/0', '1.2.3.4/32', '::', 'fe80::1/128', '1:2:3:4:5:6:7:8'])
      expect(authenticator.isValidAclId('ip', id), id).toBe(true);
    for (const id of ['::1.2.3.4', '1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6::', 'fe80::1%eth0', '::ffff:1.2.3.4/32'])
      expect(authenticator.isValidAclId('ip', id), id).toBe(true);
    for (const id of [
      '',
      '1.2.3',
      '1.2.3.256',
      '1.2.3.4/33',
      '1.2.3.4/',
      '1.2.3.4/a',
      '1.2.3.4/8/8',
      '1.2.3.-1',
      '1.2.3.4/-8',
      '1.2.3.+',
      '1.2.3.+-4',
      '1.2.3. 4',
      '1.2.3.4/ 8',
      // Arabic digits, which Java reads.
      '1.2.3.\u0664',
      ':::',
      'g::',
      '::/129',
      '1::2::3',
      '1:2:3:4:5:6:7::8',
      '1:2:3:4:5:6:7:1.2.3.4',
      '1.2.3.4:1::',
      '1:',
      ':1',
    ])
      expect(authenticator.isValidAclId('ip', id), id).toBe(false);
  });

  test('ip is no authentication, and unknown schemes are refused', () => {
    expect(authenticator.isAuthenticatedScheme('ip')).toBe(false);
    expect(authenticator.isAuthenticatedScheme('super')).toBe(false);
    expect(authenticator.authenticate('sasl', bytes(''), remote, null)).toBeNull();
    expect(authenticator.isValidAclId('world', 'anyone')).toBe(false);
    expect(authenticator.userName({ scheme: 'ip', id: '1.2.3.4' })).toBe('1.2.3.4');
    expect(authenticator.userName({ scheme: 'super', id: '' })).toBe('');
  });

  test('a v4 address mapped into v6 is a v4 address', () => {
    expect(parseIp('::ffff:10.1.2.3')).toEqual(Uint8Array.of(10, 1, 2, 3));
    expect(formatIp(parseIp('::ffff:a01:203')!)).toBe('10.1.2.3');
    expect(parseIp('fe80::1%eth0')).toEqual(parseIp('fe80::1'));
  });
});
