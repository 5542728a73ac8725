import type { PeerAddress } from '@meerkat/core';
import { describe, expect, test } from 'vitest';
import { DEFAULT_AUTH_OPTIONS, makeAuthenticator } from './authenticator.ts';

const remote: PeerAddress = { ip: Uint8Array.of(10, 1, 2, 3), host: '10.1.2.3', port: 4000 };
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('ensemble', () => {
  const named = makeAuthenticator({ ...DEFAULT_AUTH_OPTIONS, ensembleNames: ['blue', 'green'] });

  test('accepts clients that name this ensemble or none, and grants no identity', () => {
    for (const auth of [bytes('blue'), bytes('green'), bytes(''), null])
      expect(named.authenticate('ensemble', auth, remote, null)).toEqual([]);
    const nameless = makeAuthenticator({ ...DEFAULT_AUTH_OPTIONS, ensembleNames: [] });
    expect(nameless.authenticate('ensemble', bytes('red'), remote, null)).toEqual([]);
  });

  test('refuses others without a reply', () => {
    expect(named.authenticate('ensemble', bytes('red'), remote, null)).toBeNull();
    expect(named.refusesSilently('ensemble')).toBe(true);
    expect(named.refusesSilently('digest')).toBe(false);
  });

  test("counts what clients say, as Apache's: wrong, right, or nothing", () => {
    const answers = { success: 0, fail: 0, skip: 0 };
    const counting = makeAuthenticator({ ...DEFAULT_AUTH_OPTIONS, ensembleNames: ['blue'] }, new Map(), answers);
    for (const auth of [bytes('blue'), bytes('red'), bytes('green'), bytes(''), null, bytes('')])
      counting.authenticate('ensemble', auth, remote, null);
    expect(answers).toEqual({ success: 1, fail: 2, skip: 3 });
    const nameless = makeAuthenticator({ ...DEFAULT_AUTH_OPTIONS, ensembleNames: [] }, new Map(), answers);
    nameless.authenticate('ensemble', bytes('red'), remote, null);
    expect(answers.skip).toBe(4);
  });

  test('is nothing for ACLs, and does not exist unless it is asked for', () => {
    expect(named.isValidAclId('ensemble', 'blue')).toBe(false);
    expect(named.isAuthenticatedScheme('ensemble')).toBe(false);
    expect(makeAuthenticator(DEFAULT_AUTH_OPTIONS).authenticate('ensemble', bytes('blue'), remote, null)).toBeNull();
  });
});

describe('key', () => {
  const authenticator = makeAuthenticator({ ...DEFAULT_AUTH_OPTIONS, keyEnabled: true });
  const offer = (auth: string, key: string | null) =>
    authenticator.authenticate('key', bytes(auth), remote, null, (path) =>
      path === '/key' && key !== null ? bytes(key) : null,
    );

  test('knows everybody as the empty id who says a multiple of the number in /key', () => {
    const known = [{ scheme: 'key', id: '' }];
    expect(offer('21', '7')).toEqual(known);
    expect(offer('anything', null)).toEqual(known);
    expect(offer('5', '0')).toEqual(known);
    expect(offer('-14', '+7')).toEqual(known);
    for (const [auth, key] of [
      ['20', '7'],
      ['x', '7'],
      ['7', 'x'],
      ['', '7'],
      ['2147483648', '1'],
    ] as const)
      expect(offer(auth, key), `${auth} of ${key}`).toBeNull();
  });

  test('takes every id in ACLs', () => {
    expect(authenticator.isValidAclId('key', 'x')).toBe(true);
    expect(authenticator.matches('key', '', '')).toBe(true);
    expect(authenticator.matches('key', '', 'x')).toBe(false);
  });
});

test('a scheme that clients must use exists, or the server does not start', () => {
  expect(() => makeAuthenticator({ ...DEFAULT_AUTH_OPTIONS, enforcedSchemes: ['sasl'] })).toThrow(
    /clients must authenticate by sasl .* there is no such scheme: the schemes are ip, digest/,
  );
});
