/** Permissions as decided by an ACL alone: an independent model, for checkers. */
import { type Acl, OPEN_ACL, Perm } from '@meerkat/protocol';

/** What a client has authenticated as; null: anonymous. */
export type Identity = { readonly scheme: string; readonly id: string } | null;

/** Has all permissions. */
export const SUPER: Identity = { scheme: 'super', id: '' };

/** @param perms bits of `Perm`; one of them is enough */
export function isAllowed(acl: readonly Acl[], perms: number, identity: Identity): boolean {
  if (identity === SUPER || acl.length === 0) return true;
  return acl.some((entry) => {
    if ((entry.perms & perms) === 0) return false;
    if (entry.scheme === 'world') return entry.id === 'anyone';
    return identity !== null && entry.scheme === identity.scheme && entry.id === identity.id;
  });
}

export function mayRead(acl: readonly Acl[], identity: Identity): boolean {
  return isAllowed(acl, Perm.read, identity);
}

/** An absent list grants everyone everything. */
export function isSameAcl(one: readonly Acl[] = OPEN_ACL, other: readonly Acl[] = OPEN_ACL): boolean {
  return (
    one.length === other.length &&
    one.every(({ perms, scheme, id }, i) => {
      const same = other[i]!;
      return perms === same.perms && scheme === same.scheme && id === same.id;
    })
  );
}
