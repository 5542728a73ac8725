import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { type Acl, type ClientInfo, Perm } from '@meerkat/client';

/** Whom an entry is about, for people. */
export function describeWho({ scheme, id: anyId }: Acl): string {
  const id = anyId ?? '';
  switch (scheme) {
    case 'world':
      return 'anyone';
    case 'digest':
      return `user ${id.split(':')[0]} (password)`;
    case 'sasl':
      return `user ${id} (SASL)`;
    case 'ip':
      return id.includes('/') ? `clients in ${id}` : `clients at ${id}`;
    case 'x509':
      return `certificate ${id}`;
    default:
      return `${id} (${scheme})`;
  }
}

/** What permissions allow, for people. Those about children say so: that a znode may be deleted, its parent decides. */
export function describePerms(perms: number): string {
  if (perms === Perm.all) return 'do everything';
  const words: string[] = [];
  const isAboutChildren = (perms & (Perm.create | Perm.delete)) !== 0;
  if (isAboutChildren) {
    const both = [
      ...((perms & Perm.create) !== 0 ? ['create'] : []),
      ...((perms & Perm.delete) !== 0 ? ['delete'] : []),
    ];
    words.push(`${both.join(' and ')} children`);
  }
  if ((perms & Perm.read) !== 0) words.push('read');
  if ((perms & Perm.write) !== 0) words.push('write');
  if ((perms & Perm.admin) !== 0) words.push('set the ACL');
  return words.length === 0 ? 'do nothing' : words.join(', ');
}

/** What an ACL allows to a connection, as far as a client can tell. */
export interface Access {
  readonly perms: number;
  /** Some of it only if the password of a user is right: the service lists the names of users, and accepts any password. */
  readonly dependsOnPassword: boolean;
}

/** @param identities what `whoAmI` reports */
export function accessOf(acl: readonly Acl[], identities: readonly ClientInfo[]): Access {
  // The administrator; an authentication provider does not know the scheme, so that some servers send no user.
  if (identities.some(({ scheme }) => scheme === 'super')) return { perms: Perm.all, dependsOnPassword: false };
  let certain = 0;
  let perms = 0;
  for (const entry of acl) {
    if (entry.scheme === 'world') certain |= entry.perms;
    for (const identity of identities) {
      if (!isMatch(entry, identity)) continue;
      if (entry.scheme !== 'digest') certain |= entry.perms;
      perms |= entry.perms;
    }
  }
  return { perms: perms | certain, dependsOnPassword: (perms & ~certain) !== 0 };
}

function isMatch({ scheme, id }: Acl, identity: ClientInfo): boolean {
  if (scheme !== identity.scheme || id === null) return false;
  if (scheme === 'digest') return id.split(':')[0] === identity.user;
  return scheme === 'ip' ? isAddressIn(identity.user, id) : id === identity.user;
}

/** @param range an address, or a network as 10.0.0.0/8 */
function isAddressIn(address: string, range: string): boolean {
  const [network = '', bits] = range.split('/');
  const family = isIPv4(network) ? 'ipv4' : 'ipv6';
  const width = family === 'ipv4' ? 32 : 128;
  const prefix = bits === undefined ? width : Number(bits);
  if (!(isIPv4(network) || isIPv6(network)) || !(isIPv4(address) || isIPv6(address))) return address === range;
  if (!Number.isInteger(prefix) || prefix < 0 || prefix > width) return false;
  const list = new BlockList();
  list.addSubnet(network, prefix, family);
  return list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
}

/** `127.0.0.1 (ip), ann (digest)` */
export function describeIdentities(identities: readonly ClientInfo[]): string {
  if (identities.some(({ scheme }) => scheme === 'super')) return 'the administrator (super)';
  // The order differs between servers.
  const sorted = identities.toSorted((a, b) => Number(b.scheme === 'ip') - Number(a.scheme === 'ip'));
  return sorted.map(({ scheme, user }) => `${user} (${scheme})`).join(', ');
}
