import { createHash } from 'node:crypto';
import type { Authenticator, Identity, PeerAddress } from '@meerkat/core';
import { formatIp, isSameNetwork, parseIp } from './ip-address.ts';

/** What configuration says about the schemes of authentication. */
export interface AuthOptions {
  /** False: the scheme `digest` does not exist (`DigestAuthenticationProvider.enabled`). */
  readonly digestEnabled: boolean;
  /** OpenSSL's name of the hash: `sha1`, `sha256` (`DigestAuthenticationProvider.digestAlg`). */
  readonly digestAlgorithm: string;
  /** `user:hash` of the super user, null for none (`DigestAuthenticationProvider.superDigest`). */
  readonly superDigest: string | null;
}

export const DEFAULT_AUTH_OPTIONS: AuthOptions = { digestEnabled: true, digestAlgorithm: 'sha1', superDigest: null };

/**
 * One scheme (ZooKeeper's AuthenticationProvider).
 *
 * `world` is none: it has no credentials, and the core knows it. `super` is none either: it is granted by `digest` and
 * cannot be named in an ACL.
 */
interface Scheme {
  readonly isAuthenticated: boolean;
  authenticate(auth: Uint8Array, remote: PeerAddress): readonly Identity[] | null;
  isValidAclId(id: string): boolean;
  matches(identityId: string, aclId: string): boolean;
  userName(id: string): string;
}

/** The schemes `ip` and, unless it is switched off, `digest`. */
export function makeAuthenticator(options: AuthOptions): Authenticator {
  const schemes = new Map<string, Scheme>([['ip', IP_SCHEME]]);
  if (options.digestEnabled) schemes.set('digest', makeDigestScheme(options));
  return {
    initialIdentities: (remote) => [{ scheme: 'ip', id: formatIp(remote.ip) }],
    authenticate: (scheme, auth, remote) => schemes.get(scheme)?.authenticate(auth, remote) ?? null,
    isValidAclId: (scheme, id) => schemes.get(scheme)?.isValidAclId(id) ?? false,
    isAuthenticatedScheme: (scheme) => schemes.get(scheme)?.isAuthenticated ?? false,
    matches: (scheme, identityId, aclId) => schemes.get(scheme)?.matches(identityId, aclId) ?? false,
    userName: (identity) => schemes.get(identity.scheme)?.userName(identity.id) ?? '',
  };
}

/** The id of a digest identity: `user:base64(hash("user:password"))`, the user being what stands before the first ":". */
export function makeDigestId(credentials: string, algorithm: string): string {
  const colon = credentials.indexOf(':');
  const user = colon < 0 ? credentials : credentials.slice(0, colon);
  return `${user}:${createHash(algorithm).update(credentials, 'utf8').digest('base64')}`;
}

/** `digest` (DigestAuthenticationProvider). Every offer is accepted: what it is worth shows when an ACL names it. */
function makeDigestScheme(options: AuthOptions): Scheme {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  return {
    isAuthenticated: true,
    authenticate(auth) {
      const id = makeDigestId(decoder.decode(auth), options.digestAlgorithm);
      const identity = { scheme: 'digest', id };
      return id === options.superDigest ? [{ scheme: 'super', id: '' }, identity] : [identity];
    },
    isValidAclId: (id) => javaSplit(id, ':').length === 2,
    matches: (identityId, aclId) => identityId === aclId,
    userName: (id) => javaSplit(id, ':')[0] ?? '',
  };
}

/** `ip` (IPAuthenticationProvider): an address, or a network written as `address/bits`. */
const IP_SCHEME: Scheme = {
  isAuthenticated: false,
  authenticate: (_auth, remote) => [{ scheme: 'ip', id: formatIp(remote.ip) }],
  isValidAclId: (id) => parseNetwork(id) !== null,
  matches(identityId, aclId) {
    const network = parseNetwork(aclId);
    const address = parseIp(identityId);
    return network !== null && address !== null && isSameNetwork(address, network.ip, network.bits);
  },
  userName: (id) => id,
};

function parseNetwork(text: string): { readonly ip: Uint8Array; readonly bits: number } | null {
  const slash = text.indexOf('/');
  const ip = parseIp(slash < 0 ? text : text.slice(0, slash));
  if (ip === null) return null;
  const bitsMax = ip.length * 8;
  if (slash < 0) return { ip, bits: bitsMax };
  const bitsText = text.slice(slash + 1);
  if (!/^\d{1,3}$/.test(bitsText) || Number(bitsText) > bitsMax) return null;
  return { ip, bits: Number(bitsText) };
}

/** Java's `String.split`, which drops empty parts at the end: "a:" has one part and ":b" has two. */
function javaSplit(text: string, separator: string): string[] {
  const parts = text.split(separator);
  while (parts.length > 0 && parts.at(-1) === '') parts.pop();
  return parts;
}
