import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { CertificateAuthority } from '../tls/certificate-authority.ts';
import { readPeerCertificate } from '../tls/peer-certificate.ts';
import { DEFAULT_AUTH_OPTIONS, makeAuthenticator } from './authenticator.ts';
import { isDistinguishedName } from './x509.ts';

const remote = { ip: Uint8Array.of(10, 1, 2, 3), host: '10.1.2.3', port: 4000 };
const authority = new CertificateAuthority();

describe('the subject of a certificate', () => {
  // What X500Principal.getName() of JDK 17 says of the same certificates.
  test.each<[commonName: string, subject: Record<string, string>, text: string]>([
    ['ann', { O: 'Test, Inc.', C: 'XX' }, 'CN=ann,C=XX,O=Test\\, Inc.'],
    ['a b', {}, 'CN=a b'],
    [' lead', {}, 'CN=\\ lead'],
    ['trail ', {}, 'CN=trail\\ '],
    ['  ', {}, 'CN=\\ \\ '],
    ['#hash', {}, 'CN=\\#hash'],
    ['in#side', {}, 'CN=in\\#side'],
    ['a+b"c\\d<e>f;g=h', {}, 'CN=a\\+b\\"c\\\\d\\<e\\>f\\;g\\=h'],
    ['zoë кот 🐈', {}, 'CN=zoë кот 🐈'],
    ['nul\0x', {}, 'CN=nul\\00x'],
    ['x', { '1.2.840.113549.1.9.1': 'a@b.c' }, 'CN=x,1.2.840.113549.1.9.1=#0c056140622e63'],
    ['x', { '2.5.4.5': '123' }, 'CN=x,2.5.4.5=#0c03313233'],
    ['x', { OU: 'one', L: 'Town', ST: 'State' }, 'CN=x,ST=State,L=Town,OU=one'],
    ['x', { '0.9.2342.19200300.100.1.25': 'dc', '0.9.2342.19200300.100.1.1': 'uid' }, 'CN=x,UID=uid,DC=dc'],
    ['empty', { O: '' }, 'CN=empty,O='],
  ])('"%s" reads as Java writes it', (commonName, subject, text) => {
    expect(readPeerCertificate(certify(commonName, { subject })).subject).toBe(text);
  });

  test('comes with its alternative names, each behind its kind', () => {
    const names = ['DNS:a.example', 'URI:spiffe://example/a', 'email:a@example', 'IP:10.0.0.1'];
    expect(readPeerCertificate(certify('a', { names })).alternativeNames).toEqual(names);
    expect(readPeerCertificate(certify('a')).alternativeNames).toEqual([]);
  });
});

describe('the scheme x509', () => {
  const certificate = readPeerCertificate(certify('ann', { subject: { O: 'Test' }, names: ['DNS:ann.example'] }));
  const options = { ...DEFAULT_AUTH_OPTIONS, x509Enabled: true };

  test('makes an identity of the subject', () => {
    const authenticator = makeAuthenticator(options);
    expect(authenticator.initialIdentities(remote, certificate)).toEqual([
      { scheme: 'ip', id: '10.1.2.3' },
      { scheme: 'x509', id: 'CN=ann,O=Test' },
    ]);
    expect(authenticator.isAuthenticatedScheme('x509')).toBe(true);
    expect(authenticator.matches('x509', 'CN=ann,O=Test', 'CN=ann,O=Test')).toBe(true);
    expect(authenticator.matches('x509', 'CN=ann,O=Test', 'CN=ann, O=Test')).toBe(false);
    expect(authenticator.userName({ scheme: 'x509', id: 'CN=ann,O=Test' })).toBe('CN=ann,O=Test');
  });

  test('does not exist where no port speaks TLS', () => {
    const authenticator = makeAuthenticator(DEFAULT_AUTH_OPTIONS);
    expect(authenticator.initialIdentities(remote, certificate)).toHaveLength(1);
    expect(authenticator.isValidAclId('x509', 'CN=ann')).toBe(false);
    expect(authenticator.authenticate('x509', null, remote, certificate)).toBeNull();
  });

  test('makes a super user of the subject that configuration names, byte for byte', () => {
    const ofSuper = makeAuthenticator({ ...options, x509SuperUser: 'CN=ann,O=Test' });
    expect(ofSuper.initialIdentities(remote, certificate)).toContainEqual({ scheme: 'super', id: 'CN=ann,O=Test' });
    const ofOther = makeAuthenticator({ ...options, x509SuperUser: 'CN=ann, O=Test' });
    expect(ofOther.initialIdentities(remote, certificate)).toHaveLength(2);
  });

  test('adds alternative names when it is told to, and takes them in ACLs only then', () => {
    const authenticator = makeAuthenticator({ ...options, x509AlternativeNames: true });
    expect(authenticator.initialIdentities(remote, certificate)).toContainEqual({
      scheme: 'x509',
      id: 'DNS:ann.example',
    });
    expect(authenticator.isValidAclId('x509', 'DNS:ann.example')).toBe(true);
    expect(makeAuthenticator(options).isValidAclId('x509', 'DNS:ann.example')).toBe(false);
  });

  test('takes an auth packet of a connection with a certificate, and refuses it without', () => {
    const authenticator = makeAuthenticator(options);
    expect(authenticator.authenticate('x509', null, remote, certificate)).toEqual([
      { scheme: 'x509', id: 'CN=ann,O=Test' },
    ]);
    expect(authenticator.authenticate('x509', null, remote, null)).toBeNull();
  });

  // What the constructor of X500Principal of JDK 17 says.
  test.each([
    ...[
      ['', true],
      ['CN=a', true],
      ['CN=x, O=y', true],
      ['cn=x;o=y', true],
      ['1.2.3=x', true],
    ],
    ...[
      ['OID.1.2.3=#0c00', true],
      ['CN', false],
      ['CN=', true],
      ['=x', false],
      ['CN=a,', false],
      ['XX=y', false],
    ],
    ...[
      ['CN=a=b', true],
      ['CN="a,b"', true],
      ['CN=a\\,b', true],
      ['CN=#0g', false],
      ['CN=#0c0', false],
    ],
    ...[
      ['CN=a+O=b', true],
      ['EMAILADDRESS=a@b', true],
      ['DNS:foo', false],
      ['CN=a<b', false],
      ['CN=a#b', true],
    ],
    ...[
      ['1=x', false],
      ['CN="a', false],
      ['CN=a\\', false],
      ['givenName=x', true],
      [' ', false],
      ['CN=a\\zz', false],
    ],
  ] as [string, boolean][])('an ACL may name "%s": %s', (text, isValid) => {
    expect(isDistinguishedName(text)).toBe(isValid);
  });
});

function certify(name: string, options: Parameters<CertificateAuthority['issue']>[1] = {}): X509Certificate {
  return new X509Certificate(authority.issue(name, options).certificate);
}
