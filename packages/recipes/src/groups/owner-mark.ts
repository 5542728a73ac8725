import { type Acl, Perm } from '@meerkat/client';

/*
 * A process that is restarted quickly finds the ephemeral znode of its predecessor, which is deleted only when the
 * predecessor's session times out. To recognize it as its own it needs a mark that
 *
 *   - exists from the creation on, in the same txn,
 *   - leaves the data alone, which belongs to the user and to other libraries,
 *   - and survives writes of the data by others.
 *
 * The ACL satisfies all three: beside the entries of the user it gets one for an impossible digest identity, since no
 * hash of a password is `x`. The server also shows it to clients that may not see hashes.
 *
 *     digest  meerkat-owner-<owner, escaped as in a URI>:x  READ
 */

const SCHEME = 'digest';
const USER = 'meerkat-owner-';
/** What servers send instead of a hash that the reader may not see. */
const NO_HASH = 'x';

/** The ACL of a znode that belongs to `owner`; `acl` itself for null. */
export function withOwner(acl: readonly Acl[], owner: string | null): readonly Acl[] {
  return owner === null ? acl : [...acl, { scheme: SCHEME, id: idOf(owner), perms: Perm.read }];
}

export function hasOwner(acl: readonly Acl[], owner: string): boolean {
  const ownId = idOf(owner);
  return acl.some(({ scheme, id }) => scheme === SCHEME && id === ownId);
}

/** The colon, which separates user and hash, is escaped. */
function idOf(owner: string): string {
  return `${USER}${encodeURIComponent(owner)}:${NO_HASH}`;
}
