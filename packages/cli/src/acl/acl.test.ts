import { Perm } from '@meerkat/client';
import { describe, expect, it } from 'vitest';
import { formatAclText, parseAclText } from '../value/acl-text.ts';
import { accessOf, describePerms, describeWho } from './access.ts';
import { adding, removing } from './acl-change.ts';

const ACL = parseAclText('world:anyone:r,digest:ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=:rw,ip:10.0.0.0/8:cd');

describe('a change of an ACL', () => {
  it('adds entries, and permissions to those that are there', () => {
    expect(formatAclText(adding('world:anyone:w,ip:::1:r')(ACL))).toBe(
      'world:anyone:rw,digest:ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=:rw,ip:10.0.0.0/8:cd,ip:::1:r',
    );
    expect(adding('world:anyone:r')(ACL)).toBe(ACL);
  });

  it('removes entries by their name, by a user, or some of their permissions', () => {
    expect(formatAclText(removing('world:anyone,digest:ann')(ACL))).toBe('ip:10.0.0.0/8:cd');
    expect(formatAclText(removing('digest:ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=:w,ip:10.0.0.0/8:cda')(ACL))).toBe(
      'world:anyone:r,digest:ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=:r',
    );
    expect(removing('world:anyone:w,digest:bob,sasl:eve')(ACL)).toBe(ACL);
  });
});

describe('who may do what', () => {
  const at = (user: string) => ({ scheme: 'ip', user });

  it('is the sum of the entries that are about a connection', () => {
    expect(accessOf(ACL, [at('192.168.0.1')])).toEqual({ perms: Perm.read, dependsOnPassword: false });
    expect(accessOf(ACL, [at('10.1.2.3')]).perms).toBe(Perm.read | Perm.create | Perm.delete);
    expect(accessOf(ACL, [at('::1'), { scheme: 'digest', user: 'ann' }])).toEqual({
      perms: Perm.read | Perm.write,
      dependsOnPassword: true,
    });
    expect(accessOf(ACL, [{ scheme: 'super', user: '' }]).perms).toBe(Perm.all);
  });

  it('depends on no password where others may do it too', () => {
    const acl = parseAclText('world:anyone:rw,digest:ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=:r');
    expect(accessOf(acl, [{ scheme: 'digest', user: 'ann' }]).dependsOnPassword).toBe(false);
  });

  it('is reported in words', () => {
    expect(ACL.map(describeWho)).toEqual(['anyone', 'user ann (password)', 'clients in 10.0.0.0/8']);
    expect(ACL.map(({ perms }) => describePerms(perms))).toEqual(['read', 'read, write', 'create and delete children']);
    expect(describePerms(Perm.all)).toBe('do everything');
    expect(describePerms(Perm.admin | Perm.delete)).toBe('delete children, set the ACL');
    expect(describePerms(0)).toBe('do nothing');
  });
});
