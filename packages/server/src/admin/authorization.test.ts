import { X509Certificate } from 'node:crypto';
import type { ServerView } from '@meerkat/core';
import type { Acl } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { DEFAULT_AUTH_OPTIONS, makeAuthenticator, makeDigestId } from '../auth/authenticator.ts';
import { CertificateAuthority } from '../tls/certificate-authority.ts';
import { AdminAuthorization } from './authorization.ts';

const ALL = 31;
const ANN = 'digest ann:secret';
const annMay = (perms: number): Acl => ({ perms, scheme: 'digest', id: makeDigestId('ann:secret', 'sha1') });

/** The status of the refusal, null for none. @param acl of the root; null: there is no tree */
function statusOf(
  acl: readonly Acl[] | null,
  authorization: string | null,
  remote = '10.0.0.1',
  certificate: Uint8Array | null = null,
  forwarded: { readonly forwardedFor: string; readonly usesForwardedFor: boolean } | null = null,
): number | null {
  const database = acl === null ? null : { znodes: () => [{ path: '/', acl }] };
  const view = { database: () => database } as unknown as ServerView;
  const options = { ...DEFAULT_AUTH_OPTIONS, x509Enabled: true, x509SuperUser: 'CN=root' };
  const { forwardedFor = null, usesForwardedFor = false } = forwarded ?? {};
  const parts = { view, authenticator: makeAuthenticator(options), skipAcl: false, usesForwardedFor };
  const caller = { authorization, remote, forwardedFor, certificate };
  return new AdminAuthorization(parts).refusalOf(caller, { status: 503, error: null })?.status ?? null;
}

test.each([1, 2, 4, 8, 16])(
  'all data needs each permission of the root: without %s it is refused (CVE-2025-58457)',
  (one) => {
    expect(statusOf([annMay(ALL)], ANN)).toBeNull();
    expect(statusOf([annMay(ALL & ~one)], ANN)).toBe(403);
    expect(statusOf([annMay(one)], ANN)).toBe(403);
    expect(statusOf([annMay(ALL & ~one), annMay(one)], ANN)).toBeNull();
  },
);

test('who says nothing, or nothing that is understood, is not let in', () => {
  expect(statusOf([annMay(ALL)], null)).toBe(401);
  expect(statusOf([annMay(ALL)], 'digest')).toBe(401);
  expect(statusOf([annMay(ALL)], `${ANN} more`)).toBe(401);
  expect(statusOf([annMay(ALL)], 'digest ann:wrong')).toBe(403);
  expect(statusOf([annMay(ALL)], 'sasl ann')).toBe(401);
});

test('without a tree only the super user is authorized, and others do not learn that there is none', () => {
  expect(statusOf(null, null)).toBe(401);
  expect(statusOf(null, 'sasl ann')).toBe(401);
  expect(statusOf(null, ANN)).toBe(503);
  const authority = new CertificateAuthority();
  const root = new X509Certificate(authority.issue('root').certificate).raw;
  expect(statusOf(null, 'x509', '10.0.0.1', root)).toBeNull();
});

test('an address is that of the connection (CVE-2024-51504)', () => {
  const acl = [{ perms: ALL, scheme: 'ip', id: '10.0.0.1' }];
  expect(statusOf(acl, 'ip')).toBeNull();
  expect(statusOf(acl, 'ip', '10.0.0.2')).toBe(403);
  expect(statusOf(acl, 'ip 10.0.0.1', '10.0.0.2')).toBe(403);
  const forwardedFor = '10.0.0.1';
  expect(statusOf(acl, 'ip', '10.0.0.2', null, { forwardedFor, usesForwardedFor: false })).toBe(403);
});

test.each([
  ['10.0.0.1', null],
  // The first address was sent by the caller and is not trustworthy.
  ['10.0.0.9, 10.0.0.1', null],
  ['10.0.0.1,10.0.0.9', 403],
  ['10.0.0.1, unknown', 401],
])('with usexforwardedfor it is the last one that the proxy names: %s', (forwardedFor, status) => {
  const acl = [{ perms: ALL, scheme: 'ip', id: '10.0.0.1' }];
  expect(statusOf(acl, 'ip', '127.0.0.1', null, { forwardedFor, usesForwardedFor: true })).toBe(status);
});

test('x509 authenticates the subject of the certificate, and fails without one', () => {
  const authority = new CertificateAuthority();
  const der = (name: string): Uint8Array => new X509Certificate(authority.issue(name).certificate).raw;
  const acl = [{ perms: ALL, scheme: 'x509', id: 'CN=ann' }];
  expect(statusOf(acl, 'x509', '10.0.0.1', der('ann'))).toBeNull();
  expect(statusOf(acl, 'x509', '10.0.0.1', der('eve'))).toBe(403);
  expect(statusOf(acl, 'x509', '10.0.0.1', der('root'))).toBeNull();
  expect(statusOf(acl, 'x509')).toBe(401);
  expect(statusOf(acl, 'x509 CN=ann')).toBe(401);
  expect(statusOf(acl, 'x509', '10.0.0.1', Buffer.from('no certificate'))).toBe(401);
  // The connection presents it; it counts only if the header asks for x509.
  expect(statusOf(acl, 'ip', '10.0.0.1', der('ann'))).toBe(403);
});
