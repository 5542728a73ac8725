import { createHash } from 'node:crypto';
import { type Acl, OPEN_ACL, Perm, READ_ACL } from '@meerkat/protocol';
import { BadArgumentsError } from './errors.ts';

/** All permissions for anyone: the default ACL of a znode. */
export const OPEN: readonly Acl[] = OPEN_ACL;

/** Anyone may read; no changes are allowed. */
export const READ_ONLY: readonly Acl[] = READ_ACL;

/** All permissions for the creator of the znode, none for others. The server refuses it before `addAuth`. */
export const CREATOR_ALL: readonly Acl[] = Object.freeze([Object.freeze({ perms: Perm.all, scheme: 'auth', id: '' })]);

/** What an entry allows: letters out of 'cdrwa' (create, delete, read, write, admin) in any order, or the bits of Perm. */
export type Perms = string | number;

/**
 * Makes the entries of an ACL.
 *
 * @example
 * await client.create('/secrets', 'x', {
 *   acl: [acl.digest('admin', 'pass', 'cdrwa'), acl.ip('10.0.0.0/8', 'r')],
 * });
 */
export const acl: AclMaker = {
  world: (perms) => entry(perms, 'world', 'anyone'),
  auth: (perms = Perm.all) => entry(perms, 'auth', ''),
  digest: (user, password, perms = Perm.all) => entry(perms, 'digest', digestId(user, password)),
  ip: (address, perms = Perm.all) => entry(perms, 'ip', address),
  x509: (distinguishedName, perms = Perm.all) => entry(perms, 'x509', distinguishedName),
  sasl: (name, perms = Perm.all) => entry(perms, 'sasl', name),
};

export interface AclMaker {
  /** Anyone. */
  world(perms: Perms): Acl;
  /** Every identity with which the creator of the znode has authenticated. */
  auth(perms?: Perms): Acl;
  /** A client that knows user and password; the znode keeps only a hash. */
  digest(user: string, password: string, perms?: Perms): Acl;
  /** A client that connects from an address, or from a network such as '10.0.0.0/8'. */
  ip(address: string, perms?: Perms): Acl;
  /** A client that holds the client certificate with this name (RFC 2253). */
  x509(distinguishedName: string, perms?: Perms): Acl;
  /** A client that authenticated by SASL under this name. */
  sasl(name: string, perms?: Perms): Acl;
}

/** What `addAuth` and the options of `connect` take. */
export interface AuthCredentials {
  readonly scheme: string;
  readonly auth: string;
}

/**
 * Credentials of the scheme digest; as user `super`, those of the administrator.
 *
 * @example
 * const { scheme, auth } = digestAuth('admin', 'pass');
 * await client.addAuth(scheme, auth);
 */
export function digestAuth(user: string, password: string): AuthCredentials {
  return { scheme: 'digest', auth: `${checkedUser(user)}:${password}` };
}

/**
 * The id of a user in the scheme digest: name and hash, as in an ACL and the server's `superDigest` property.
 *
 * @example
 * digestId('super', 'test'); // 'super:D/InIHSb7yEEbrWz8b9l71RjZJU='
 */
export function digestId(user: string, password: string): string {
  const hash = createHash('sha1')
    .update(`${checkedUser(user)}:${password}`)
    .digest('base64');
  return `${user}:${hash}`;
}

/**
 * @example
 * parsePerms('rw') === (Perm.read | Perm.write);
 *
 * @throws BadArgumentsError for other letters than c, d, r, w, a
 */
export function parsePerms(perms: Perms): number {
  if (typeof perms === 'number') return perms;
  let bits = 0;
  for (const letter of perms) {
    const bit = LETTERS.get(letter);
    if (bit === undefined) throw badAcl(`a permission is one of the letters c, d, r, w and a, not ${letter}`);
    bits |= bit;
  }
  return bits;
}

/**
 * @example
 * formatPerms(31) === 'cdrwa';
 */
export function formatPerms(perms: number): string {
  let text = '';
  for (const [letter, bit] of LETTERS) if ((perms & bit) !== 0) text += letter;
  return text;
}

/** In the order in which ZooKeeper's tools write them. */
const LETTERS: ReadonlyMap<string, number> = new Map([
  ['c', Perm.create],
  ['d', Perm.delete],
  ['r', Perm.read],
  ['w', Perm.write],
  ['a', Perm.admin],
]);

function entry(perms: Perms, scheme: string, id: string): Acl {
  return { perms: parsePerms(perms), scheme, id };
}

/** The server splits `user:hash` at the colon, so a name with one could never be matched. */
function checkedUser(user: string): string {
  if (user.includes(':')) throw badAcl('the name of a user of the scheme digest cannot contain ":"');
  return user;
}

function badAcl(detail: string): BadArgumentsError {
  return new BadArgumentsError({ operation: 'acl', path: null, detail });
}
