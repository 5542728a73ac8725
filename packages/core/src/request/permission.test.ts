import { ACL_ENTRIES_MAX, type Acl, Perm } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import type { Authenticator, Identity } from '../base/ports.ts';
import { PLAIN_AUTHENTICATOR } from '../testing/plain-authenticator.ts';
import { Permission } from './permission.ts';
import { WorkMeter } from './work-meter.ts';

const ENTRIES = 4000;
const ANN: Identity = { scheme: 'digest', id: 'ann:secret' };
const BOB: Identity = { scheme: 'digest', id: 'bob:secret' };

/** A long list in which `user` may read. */
function longAcl(user: string): readonly Acl[] {
  const others = Array.from({ length: ENTRIES }, (_, i) => ({ perms: Perm.all, scheme: 'digest', id: `u${i}:secret` }));
  return [...others, { perms: Perm.read, scheme: 'digest', id: `${user}:secret` }];
}

/** Counts how often an entry is compared with an identity. */
class CountingAuthenticator {
  comparisons = 0;
  readonly authenticator: Authenticator = {
    ...PLAIN_AUTHENTICATOR,
    matches: (scheme, identityId, aclId) => {
      this.comparisons++;
      return PLAIN_AUTHENTICATOR.matches(scheme, identityId, aclId);
    },
  };
}

describe('Permission', () => {
  it('compares a long list with the identities of a connection only once', () => {
    const counting = new CountingAuthenticator();
    const permission = new Permission(counting.authenticator, false);
    const acl = longAcl('ann');
    const identities = [{ scheme: 'ip', id: '127.0.0.1' }, ANN];
    for (let i = 0; i < 100; i++) {
      expect(permission.isAllowed(acl, Perm.read, identities)).toBe(true);
      expect(permission.isAllowed(acl, Perm.write, identities)).toBe(false);
    }
    expect(counting.comparisons).toBe(0);
    const ip = Array.from({ length: ENTRIES }, (_, i) => ({ perms: Perm.all, scheme: 'ip', id: `10.0.0.${i}` }));
    for (let i = 0; i < 100; i++) expect(permission.isAllowed(ip, Perm.read, identities)).toBe(false);
    expect(counting.comparisons).toBe(ENTRIES);
  });

  it('compares again when the connection has a new identity', () => {
    const permission = new Permission(PLAIN_AUTHENTICATOR, false);
    const acl = longAcl('ann');
    expect(permission.isAllowed(acl, Perm.read, [BOB])).toBe(false);
    expect(permission.isAllowed(acl, Perm.read, [BOB, ANN])).toBe(true);
    expect(permission.isAllowed(longAcl('bob'), Perm.read, [BOB])).toBe(true);
  });

  it('checks each entry once, regardless of the number of identities', () => {
    const counting = new CountingAuthenticator();
    const work = new WorkMeter();
    const permission = new Permission(counting.authenticator, false, work);
    const identities = Array.from({ length: 100 }, (_, i) => ({ scheme: 'digest', id: `u${ENTRIES + i}:secret` }));
    expect(permission.isAllowed(longAcl('ann'), Perm.read, identities)).toBe(false);
    expect(permission.isAllowed(longAcl(`u${ENTRIES + 50}`), Perm.read, identities)).toBe(true);
    expect(counting.comparisons).toBe(0);
    expect(work.charge(0)).toBe(2 * (ENTRIES + 1 + identities.length));
  });

  it('compares many identities with a short list once, including the super user', () => {
    const counting = new CountingAuthenticator();
    const permission = new Permission(counting.authenticator, false);
    const identities = Array.from({ length: ENTRIES }, (_, i) => ({ scheme: 'ip', id: `10.0.${i >> 8}.${i & 255}` }));
    const acl = [{ perms: Perm.read, scheme: 'ip', id: '10.1.0.0' }];
    for (let i = 0; i < 100; i++) expect(permission.isAllowed(acl, Perm.read, identities)).toBe(false);
    expect(counting.comparisons).toBe(ENTRIES);
    expect(permission.isAllowed(acl, Perm.admin, [...identities, { scheme: 'super', id: '' }])).toBe(true);
  });

  it('charges the work meter for comparisons', () => {
    const work = new WorkMeter();
    const permission = new Permission(PLAIN_AUTHENTICATOR, false, work);
    permission.isAllowed(longAcl('ann'), Perm.read, [ANN]);
    expect(work.charge(0)).toBe(ENTRIES + 1 + 1);
  });

  it('gives the same results for long lists as for short ones', () => {
    const permission = new Permission(PLAIN_AUTHENTICATOR, false);
    const none = Array.from({ length: ENTRIES }, (_, i) => ({ perms: Perm.all, scheme: 'digest', id: `u${i}:x` }));
    const read = { perms: Perm.read, scheme: 'digest', id: ANN.id };
    const write = { perms: Perm.write | Perm.create, scheme: 'digest', id: BOB.id };
    const anyone = { perms: Perm.delete, scheme: 'world', id: 'anyone' };
    const nameless = { perms: Perm.all, scheme: 'digest', id: null };
    const entries: readonly Acl[] = [read, write, anyone, nameless];
    for (const identities of [[], [ANN], [BOB], [ANN, BOB], [{ scheme: 'super', id: '' }]]) {
      for (const perms of [Perm.read, Perm.write, Perm.create, Perm.delete, Perm.admin, Perm.read | Perm.admin]) {
        const short = permission.isAllowed(entries, perms, identities);
        expect(permission.isAllowed([...none, ...entries], perms, identities)).toBe(short);
      }
    }
  });

  it('resolves a list in linear time', () => {
    const permission = new Permission(PLAIN_AUTHENTICATOR, false);
    let reads = 0;
    const entries = Array.from({ length: ENTRIES }, (_, i) => ({
      perms: Perm.all,
      scheme: 'ip',
      get id(): string {
        reads++;
        return `10.0.${i >> 8}.${i & 255}`;
      },
    }));
    expect(permission.resolveAcl(entries, [])).toHaveLength(ENTRIES);
    expect(reads).toBeLessThanOrEqual(10 * ENTRIES);
  });

  it('removes exact duplicates from long and short lists, and keeps the first', () => {
    const permission = new Permission(PLAIN_AUTHENTICATOR, false);
    const list = [
      { perms: 1, scheme: 'ip', id: 'a' },
      { perms: 2, scheme: 'ip', id: 'a' },
      { perms: 1, scheme: 'ip', id: 'a' },
      { perms: 1, scheme: 'digest', id: 'a:b' },
      { perms: 1, scheme: 'ip', id: 'b' },
      { perms: 2, scheme: 'ip', id: 'a' },
    ];
    const unique = [list[0], list[1], list[3], list[4]];
    expect(permission.resolveAcl(list, [])).toEqual(unique);
    const many = Array.from({ length: 50 }, () => list).flat();
    expect(permission.resolveAcl(many, [])).toEqual(unique);
  });

  it('refuses auth entries that would expand to more entries than a list may have', () => {
    const permission = new Permission(PLAIN_AUTHENTICATOR, false);
    const identities = Array.from({ length: 100 }, (_, i) => ({ scheme: 'digest', id: `user-${i}:x` }));
    const entries = (count: number) => Array.from({ length: count }, (_, perms) => ({ perms, scheme: 'auth', id: '' }));
    const most = Math.floor(ACL_ENTRIES_MAX / 100);
    expect(permission.resolveAcl(entries(most), identities)).toHaveLength(most * 100);
    expect(permission.resolveAcl(entries(most + 1), identities)).toBeNull();
    expect(permission.resolveAcl(entries(ACL_ENTRIES_MAX + 1), identities)).toBeNull();
  });

  it('keeps undefined permission bits, as Apache 3.8.0 does', () => {
    const permission = new Permission(PLAIN_AUTHENTICATOR, false);
    for (const perms of [0x3f, -1, 0x7fffffff, 32, 0]) {
      expect(permission.resolveAcl([{ perms, scheme: 'world', id: 'anyone' }], [])).toMatchObject([{ perms }]);
    }
  });
});
