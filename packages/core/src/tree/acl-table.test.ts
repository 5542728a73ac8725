import { type Acl, OPEN_ACL, READ_ACL } from '@meerkat/protocol';
import { describe, expect, it } from 'vitest';
import { AclTable, OPEN_ACL_ID } from './acl-table.ts';

const ANN: readonly Acl[] = [{ perms: 31, scheme: 'digest', id: 'ann:x' }];

describe('an ACL table', () => {
  it('has no entry for the open list, however it is spelled', () => {
    const acls = new AclTable();
    expect(acls.intern(OPEN_ACL)).toBe(OPEN_ACL_ID);
    expect(acls.intern([{ perms: 31, scheme: 'world', id: 'anyone' }])).toBe(OPEN_ACL_ID);
    expect(acls.get(OPEN_ACL_ID)).toBe(OPEN_ACL);
    expect(acls.size).toBe(0);
  });

  it('gives equal lists the same id, and others a different one', () => {
    const acls = new AclTable();
    const id = acls.intern(ANN);
    expect(acls.intern([{ ...ANN[0]! }])).toBe(id);
    expect(acls.intern([{ perms: 31, scheme: 'digest', id: 'ann:y' }])).not.toBe(id);
    expect(acls.intern([...ANN, ...READ_ACL])).not.toBe(acls.intern([...READ_ACL, ...ANN]));
    expect(acls.intern([])).not.toBe(id);
  });

  it('distinguishes lists whose concatenated texts are equal', () => {
    const acls = new AclTable();
    const ids = [
      acls.intern([{ perms: 1, scheme: 'ab', id: 'c' }]),
      acls.intern([{ perms: 1, scheme: 'a', id: 'bc' }]),
      acls.intern([{ perms: 1, scheme: 'a', id: 'b1,1,1,cd' }]),
      acls.intern([
        { perms: 1, scheme: 'a', id: 'b' },
        { perms: 1, scheme: 'c', id: 'd' },
      ]),
      acls.intern([{ perms: 1, scheme: null, id: '' }]),
      acls.intern([{ perms: 1, scheme: '', id: null }]),
    ];
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('drops a list with its last znode and never reuses its id', () => {
    const acls = new AclTable();
    const id = acls.intern(ANN);
    acls.addReference(id);
    acls.addReference(id);
    acls.release(id);
    expect(acls.get(id)).toBe(ANN);
    acls.release(id);
    expect(acls.size).toBe(0);
    expect(acls.intern(ANN)).toBeGreaterThan(id);
  });

  it('purges lists that no znode uses', () => {
    const acls = new AclTable();
    const kept = acls.intern(READ_ACL);
    acls.addReference(kept);
    acls.intern(ANN);
    acls.purgeUnused();
    expect(acls.entries()).toEqual([[kept, READ_ACL]]);
  });
});
