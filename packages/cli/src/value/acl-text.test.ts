import { Perm } from '@meerkat/client';
import { describe, expect, it } from 'vitest';
import { formatAclText, parseAclText } from './acl-text.ts';

describe('the text of an ACL', () => {
  it('is split at the first and the last colon of an entry', () => {
    expect(parseAclText('world:anyone:r,ip:::1:rw,digest:ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=:cdrwa,auth::a')).toEqual([
      { scheme: 'world', id: 'anyone', perms: Perm.read },
      { scheme: 'ip', id: '::1', perms: Perm.read | Perm.write },
      { scheme: 'digest', id: 'ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=', perms: Perm.all },
      { scheme: 'auth', id: '', perms: Perm.admin },
    ]);
  });

  it('takes certificates whose names have commas and colons', () => {
    const text = 'x509:CN=a:b,O=Example,C=NZ:r,world:anyone:r';
    expect(parseAclText(text).map(({ scheme, id }) => [scheme, id])).toEqual([
      ['x509', 'CN=a:b,O=Example,C=NZ'],
      ['world', 'anyone'],
    ]);
  });

  it('is written as it is read, without permissions too', () => {
    const text = 'world:anyone:,digest:ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=:cdrwa,x509:CN=a,O=b:dw,sasl:ann/host@REALM:ra';
    expect(formatAclText(parseAclText(text))).toBe(text);
  });

  it('makes the hash of a password here, as ZooKeeper documents it for super:test', () => {
    expect(parseAclText('password:super:test:all')).toEqual([
      { scheme: 'digest', id: 'super:D/InIHSb7yEEbrWz8b9l71RjZJU=', perms: Perm.all },
    ]);
  });

  it('has words for what is common', () => {
    expect(formatAclText(parseAclText('creator,read-only'))).toBe('auth::cdrwa,world:anyone:r');
    expect(formatAclText(parseAclText('open'))).toBe('world:anyone:cdrwa');
  });

  it.each([
    ['', 'at least one entry'],
    ['world:anyone', 'it is scheme:id:perms'],
    ['world:anyone:rx', '"rx" are no permissions'],
    ['world:everyone:r', 'no other id than "anyone"'],
    ['digest:ann:rw', 'the id of digest is user:hash'],
    ['digest:ann:secret:rw', '"password:user:password:perms" makes it here'],
    ['x509:CN=a,O=b', 'it is scheme:id:perms'],
  ])('is refused in words: %j', (text, words) => {
    expect(() => parseAclText(text)).toThrow(words);
  });

  it('does not tell a password again', () => {
    expect(() => parseAclText('password:ann:secret:xyz')).toThrow(/^(?!.*secret)/);
    expect(() => parseAclText('digest:ann:secret:r')).toThrow(/^(?!.*secret)/);
  });
});
