import { describe, expect, test } from 'vitest';
import { acl, CREATOR_ALL, digestAuth, digestId, formatPerms, OPEN, parsePerms, READ_ONLY } from './acl.ts';
import { BadArgumentsError } from './errors.ts';

describe('an ACL', () => {
  // The vector of the ZooKeeper manual: DigestAuthenticationProvider for super:test.
  test('of the scheme digest has the hash of DigestAuthenticationProvider', () => {
    expect(digestId('super', 'test')).toBe('super:D/InIHSb7yEEbrWz8b9l71RjZJU=');
    expect(acl.digest('super', 'test')).toEqual({
      perms: 31,
      scheme: 'digest',
      id: 'super:D/InIHSb7yEEbrWz8b9l71RjZJU=',
    });
  });

  test('of the scheme digest accepts colons in the password, but not in the user', () => {
    expect(digestAuth('ann', 'a:b')).toEqual({ scheme: 'digest', auth: 'ann:a:b' });
    expect(() => acl.digest('a:b', 'c')).toThrow(BadArgumentsError);
    expect(() => digestAuth('a:b', 'c')).toThrow(BadArgumentsError);
  });

  test('has the ids of the other schemes unchanged', () => {
    expect(acl.world('r')).toEqual({ perms: 1, scheme: 'world', id: 'anyone' });
    expect(acl.auth('cdrwa')).toEqual({ perms: 31, scheme: 'auth', id: '' });
    expect(acl.ip('10.0.0.0/8', 'rw')).toEqual({ perms: 3, scheme: 'ip', id: '10.0.0.0/8' });
    expect(acl.x509('CN=ann', 'cd')).toEqual({ perms: 12, scheme: 'x509', id: 'CN=ann' });
    expect(acl.sasl('ann@REALM', 16)).toEqual({ perms: 16, scheme: 'sasl', id: 'ann@REALM' });
  });

  test('has constants for the three usual cases', () => {
    expect(OPEN).toEqual([{ perms: 31, scheme: 'world', id: 'anyone' }]);
    expect(READ_ONLY).toEqual([{ perms: 1, scheme: 'world', id: 'anyone' }]);
    expect(CREATOR_ALL).toEqual([{ perms: 31, scheme: 'auth', id: '' }]);
  });
});

describe('permissions', () => {
  test('are letters in any order, or bits', () => {
    expect(parsePerms('cdrwa')).toBe(31);
    expect(parsePerms('wr')).toBe(3);
    expect(parsePerms('')).toBe(0);
    expect(parsePerms(5)).toBe(5);
    expect(formatPerms(31)).toBe('cdrwa');
    expect(formatPerms(6)).toBe('cw');
  });

  test('of an unknown letter are refused', () => {
    expect(() => parsePerms('rx')).toThrow(/not x/);
  });
});
