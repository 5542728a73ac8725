import type { ServerView } from '@meerkat/core';
import type { Acl } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { DEFAULT_AUTH_OPTIONS, makeAuthenticator, makeDigestId } from '../auth/authenticator.ts';
import { AdminAuthorization } from './authorization.ts';

const ALL = 31;
const ANN = 'digest ann:secret';
const annMay = (perms: number): Acl => ({ perms, scheme: 'digest', id: makeDigestId('ann:secret', 'sha1') });

/** The status of the refusal, null for none. */
function statusOf(acl: readonly Acl[], header: string | null, remote = '10.0.0.1'): number | null {
  const view = { database: () => ({ znodes: () => [{ path: '/', acl }] }) } as unknown as ServerView;
  const parts = { view, authenticator: makeAuthenticator(DEFAULT_AUTH_OPTIONS), skipAcl: false };
  return new AdminAuthorization(parts).refusalOf(header, remote)?.status ?? null;
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

test('an address is that of the connection (CVE-2024-51504)', () => {
  const acl = [{ perms: ALL, scheme: 'ip', id: '10.0.0.1' }];
  expect(statusOf(acl, 'ip')).toBeNull();
  expect(statusOf(acl, 'ip', '10.0.0.2')).toBe(403);
  expect(statusOf(acl, 'ip 10.0.0.1', '10.0.0.2')).toBe(403);
});
