import { ACL_ENTRIES_MAX, type Acl, OPEN_ACL } from '@meerkat/protocol';
import type { Authenticator, Identity } from '../base/ports.ts';
import type { WorkMeter } from './work-meter.ts';

/** Checks and resolves ACLs (ZooKeeperServer.checkACL, PrepRequestProcessor.fixupACL). */
export class Permission {
  readonly #authenticator: Authenticator;
  /** `skipACL`: everything is allowed. */
  readonly #isSkipped: boolean;
  readonly #work: WorkMeter | null;
  /** Cached results for long lists: identity arrays and ACLs are immutable. */
  readonly #grants: WeakMap<readonly Identity[], WeakMap<readonly Acl[], number>> = new WeakMap();

  /** @param work charged for comparisons; null: not metered */
  constructor(authenticator: Authenticator, isSkipped: boolean, work: WorkMeter | null = null) {
    this.#authenticator = authenticator;
    this.#isSkipped = isSkipped;
    this.#work = work;
  }

  /**
   * @param perms bits of `Perm`; any of them is enough
   * @returns true when the list is empty, or one of the identities is the super user or is granted one of the bits
   */
  isAllowed(acl: readonly Acl[], perms: number, identities: readonly Identity[]): boolean {
    if (acl === OPEN_ACL || this.#isSkipped || acl.length === 0) return true;
    if (acl.length > SHORT_LENGTH || identities.length > SHORT_LENGTH) {
      return (this.#grantsOf(acl, identities) & perms) !== 0;
    }
    if (identities.some(isSuper)) return true;
    for (const entry of acl) {
      if ((entry.perms & perms) !== 0 && this.#isFor(entry, identities)) return true;
    }
    return false;
  }

  /** All bits that a list grants; computed once per list and identity array. */
  #grantsOf(acl: readonly Acl[], identities: readonly Identity[]): number {
    let grants = this.#grants.get(identities);
    if (grants === undefined) {
      grants = new WeakMap();
      this.#grants.set(identities, grants);
    }
    let granted = grants.get(acl);
    if (granted === undefined) {
      granted = this.#compare(acl, identities);
      grants.set(acl, granted);
    }
    return granted;
  }

  /** Identities with exact ids are looked up in a map; only the others, which are few, are compared one by one. */
  #compare(acl: readonly Acl[], identities: readonly Identity[]): number {
    const isExact = ({ scheme }: Identity): boolean => this.#authenticator.isExact(scheme);
    const exact = idsOf(identities.filter(isExact));
    const others = identities.filter((identity) => !isExact(identity));
    this.#work?.add(acl.length * Math.max(1, others.length) + identities.length);
    if (identities.some(isSuper)) return ~0;
    let granted = 0;
    for (const entry of acl) {
      if ((entry.perms & ~granted) === 0) continue;
      if (exact.get(entry.scheme)?.has(entry.id) === true || this.#isFor(entry, others)) granted |= entry.perms;
    }
    return granted;
  }

  #isFor({ scheme, id }: Acl, identities: readonly Identity[]): boolean {
    if (scheme === null || id === null) return false;
    if (scheme === 'world' && id === 'anyone') return true;
    for (const identity of identities) {
      if (identity.scheme === scheme && this.#authenticator.matches(scheme, identity.id, id)) return true;
    }
    return false;
  }

  /**
   * The list as it is stored: without exact duplicates, and with `auth` entries replaced by the caller's identities.
   *
   * Permission bits stay as they are, including undefined ones.
   *
   * @returns null when the list is not acceptable (INVALIDACL)
   */
  resolveAcl(acl: readonly Acl[], identities: readonly Identity[]): readonly Acl[] | null {
    if (acl === OPEN_ACL) return acl;
    if (acl.length === 0 || acl.length > ACL_ENTRIES_MAX) return null;
    this.#work?.add(acl.length * RESOLVE_UNITS);
    const own = identities.filter((identity) => this.#authenticator.isAuthenticatedScheme(identity.scheme));
    const resolved: Acl[] = [];
    // An `auth` entry stands for every identity of the caller; too long a list is never built.
    let left = ACL_ENTRIES_MAX;
    for (const entry of withoutDuplicates(acl)) {
      const { perms, scheme, id } = entry;
      if (scheme === null) return null;
      if (scheme === 'world' && id === 'anyone') {
        resolved.push(entry);
      } else if (scheme === 'auth') {
        // The id is ignored; some clients send null for the empty string.
        if (own.length === 0 || own.length > left) return null;
        for (const identity of own) resolved.push({ perms, scheme: identity.scheme, id: identity.id });
      } else {
        if (id === null || !this.#authenticator.isValidAclId(scheme, id)) return null;
        resolved.push(entry);
      }
      left = ACL_ENTRIES_MAX - resolved.length;
      if (left < 0) return null;
    }
    return resolved;
  }
}

/** Cost of an entry of a list that is set: decoding, validating, deduplicating and storing it. */
const RESOLVE_UNITS = 8;

/** Up to this number of entries or identities a list is scanned each time. */
const SHORT_LENGTH = 16;

function isSuper({ scheme }: Identity): boolean {
  return scheme === 'super';
}

/** Ids by scheme. The key types allow null because the scheme and id of an ACL entry may be null. */
function idsOf(identities: readonly Identity[]): ReadonlyMap<string | null, ReadonlySet<string | null>> {
  const ids = new Map<string, Set<string>>();
  for (const { scheme, id } of identities) {
    const ofScheme = ids.get(scheme);
    if (ofScheme === undefined) ids.set(scheme, new Set([id]));
    else ofScheme.add(id);
  }
  return ids;
}

/** Entries with a unique id, which are nearly all, cost one lookup. */
function withoutDuplicates(acl: readonly Acl[]): readonly Acl[] {
  if (acl.length === 1) return acl;
  const firstOf = new Map<string | null, Acl>();
  const seen = new Set<string>();
  return acl.filter((entry) => {
    const first = firstOf.get(entry.id);
    if (first === undefined) {
      firstOf.set(entry.id, entry);
      return true;
    }
    seen.add(keyOf(first));
    const key = keyOf(entry);
    const isNew = !seen.has(key);
    seen.add(key);
    return isNew;
  });
}

/** Unambiguous: includes the length of the scheme, and whether the id is null. */
function keyOf({ perms, scheme, id }: Acl): string {
  return `${perms},${id === null},${scheme?.length ?? -1},${scheme},${id}`;
}
