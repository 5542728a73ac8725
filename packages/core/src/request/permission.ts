import { type Acl, OPEN_ACL } from '@meerkat/protocol';
import type { Authenticator, Identity } from '../ports.ts';

/** Decides who may do what (ZooKeeperServer.checkACL, PrepRequestProcessor.fixupACL). */
export class Permission {
  readonly #authenticator: Authenticator;
  /** `skipACL`: everything is allowed. */
  readonly #isSkipped: boolean;

  constructor(authenticator: Authenticator, isSkipped: boolean) {
    this.#authenticator = authenticator;
    this.#isSkipped = isSkipped;
  }

  /**
   * @param perms bits of `Perm`; any of them is enough
   * @returns true when the list is empty, somebody is the super user, or an entry grants one of the bits to somebody
   */
  isAllowed(acl: readonly Acl[], perms: number, identities: readonly Identity[]): boolean {
    if (acl === OPEN_ACL || this.#isSkipped || acl.length === 0) return true;
    for (const identity of identities) if (identity.scheme === 'super') return true;
    for (const entry of acl) {
      if ((entry.perms & perms) === 0 || entry.scheme === null || entry.id === null) continue;
      if (entry.scheme === 'world' && entry.id === 'anyone') return true;
      for (const identity of identities) {
        if (identity.scheme === entry.scheme && this.#authenticator.matches(entry.scheme, identity.id, entry.id)) {
          return true;
        }
      }
    }
    return false;
  }

  /**
   * The list as it is stored: exact duplicates gone, `auth` entries replaced by what the caller has shown to be.
   *
   * @returns null when the list is not acceptable (INVALIDACL)
   */
  resolveAcl(acl: readonly Acl[], identities: readonly Identity[]): readonly Acl[] | null {
    if (acl === OPEN_ACL) return acl;
    if (acl.length === 0) return null;
    const resolved: Acl[] = [];
    for (const entry of withoutDuplicates(acl)) {
      const { perms, scheme, id } = entry;
      if (scheme === null) return null;
      if (scheme === 'world' && id === 'anyone') {
        resolved.push(entry);
      } else if (scheme === 'auth') {
        // Its id means nothing; some clients send null for the empty text.
        const own = identities.filter((identity) => this.#authenticator.isAuthenticatedScheme(identity.scheme));
        if (own.length === 0) return null;
        for (const identity of own) resolved.push({ perms, scheme: identity.scheme, id: identity.id });
      } else {
        if (id === null || !this.#authenticator.isValidAclId(scheme, id)) return null;
        resolved.push(entry);
      }
    }
    return resolved;
  }
}

function withoutDuplicates(acl: readonly Acl[]): readonly Acl[] {
  return acl.filter(
    (entry, i) =>
      acl.findIndex(
        (other) => other.perms === entry.perms && other.scheme === entry.scheme && other.id === entry.id,
      ) === i,
  );
}
