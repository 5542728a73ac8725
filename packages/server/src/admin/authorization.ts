import type { Authenticator, Identity, PeerAddress, PeerCertificate, ServerView } from '@meerkat/core';
import { type Acl, Perm } from '@meerkat/protocol';
import { DerError } from '@meerkat/protocol/der';
import { parseIp } from '../auth/ip-address.ts';
import { readPeerCertificate } from '../tls/peer-certificate.ts';

/** Why a command is not carried out, with the code of HTTP. */
export interface Refusal {
  readonly status: number;
  readonly error: string | null;
}

/** The sender of a request. */
export interface Caller {
  /** The Authorization header. */
  readonly authorization: string | null;
  /** The address, as text. */
  readonly remote: string;
  /** The X-Forwarded-For header. */
  readonly forwardedFor: string | null;
  /** In DER, checked; null when none was shown. */
  readonly certificate: Uint8Array | null;
}

export interface AuthorizationParts {
  readonly view: ServerView;
  readonly authenticator: Authenticator;
  readonly skipAcl: boolean;
  /** See `AdminOptions`. */
  readonly usesForwardedFor: boolean;
}

/**
 * Authorizes HTTP requests that read or replace all data, end sessions or send clients away: the caller needs each of
 * the five permissions of the root (as ZooKeeper since 3.9.4).
 *
 *     Authorization: digest ann:secret
 *     Authorization: ip
 *     Authorization: x509        with TLS: what the certificate says
 */
export class AdminAuthorization {
  readonly #parts: AuthorizationParts;

  constructor(parts: AuthorizationParts) {
    this.#parts = parts;
  }

  /**
   * Called before anything else, so that an unauthorized caller learns nothing about the state of this server.
   *
   * @param withoutTree the refusal while there is no tree to find the root's ACL in: of a server that looks for a leader
   */
  refusalOf(caller: Caller, withoutTree: Refusal): Refusal | null {
    const { authenticator, skipAcl, view } = this.#parts;
    if (caller.authorization === null) return { status: 401, error: 'Auth info is missing for the command' };
    const identities = this.#identify(caller);
    if (identities.length === 0) return NOT_AUTHENTICATED;
    if (skipAcl || identities.some((identity) => identity.scheme === 'super')) return null;
    const database = view.database();
    if (database === null) return withoutTree;
    const [root] = database.znodes();
    const isAllowed = EACH.every(
      (perm) => root?.acl.some((entry) => grants(entry, perm, identities, authenticator)) === true,
    );
    return isAllowed ? null : { status: 403, error: 'Not authorized' };
  }

  /** As the audit log names who asks. */
  describe(caller: Caller): { readonly users: readonly string[]; readonly host: string } {
    const { authenticator } = this.#parts;
    const users = this.#identify(caller).map((identity) => authenticator.userName(identity));
    return { users: users.filter((user) => user !== ''), host: this.#hostOf(caller) };
  }

  #hostOf({ remote, forwardedFor }: Caller): string {
    // Addresses before the last one were sent by the caller and are not trustworthy (CVE-2024-51504).
    return this.#parts.usesForwardedFor ? (forwardedFor?.split(',').at(-1)?.trim() ?? remote) : remote;
  }

  /** None of one who does not authenticate. */
  #identify(caller: Caller): readonly Identity[] {
    const [scheme = '', credentials, ...more] = (caller.authorization ?? '').split(' ');
    const host = this.#hostOf(caller);
    const ip = parseIp(host);
    if (more.length > 0 || ip === null) return [];
    const address: PeerAddress = { ip, host, port: 0 };
    return this.#identitiesOf(scheme.toLowerCase(), credentials, address, caller.certificate) ?? [];
  }

  #identitiesOf(
    scheme: string,
    credentials: string | undefined,
    address: PeerAddress,
    certificate: Uint8Array | null,
  ): readonly Identity[] | null {
    const { authenticator } = this.#parts;
    if (scheme === 'ip') return authenticator.initialIdentities(address, null);
    if (scheme === 'x509') return authenticator.authenticate(scheme, null, address, readCertificate(certificate));
    if (credentials === undefined) return null;
    return authenticator.authenticate(scheme, Buffer.from(credentials), address, null);
  }
}

/** Null for one that cannot be decoded, too. */
function readCertificate(der: Uint8Array | null): PeerCertificate | null {
  if (der === null) return null;
  try {
    return readPeerCertificate({ raw: der });
  } catch (error) {
    if (error instanceof DerError) return null;
    throw error;
  }
}

function grants(
  { perms, scheme, id }: Acl,
  perm: number,
  identities: readonly Identity[],
  authenticator: Authenticator,
): boolean {
  if ((perms & perm) === 0) return false;
  if (scheme === 'world' && id === 'anyone') return true;
  return identities.some(
    (identity) => identity.scheme === scheme && id !== null && authenticator.matches(identity.scheme, identity.id, id),
  );
}

const EACH = [Perm.read, Perm.write, Perm.create, Perm.delete, Perm.admin];
/** As ZooKeeper says it, with this code. */
export const NOT_SERVING: Refusal = {
  status: 200,
  error: 'This ZooKeeper instance is not currently serving requests',
};
const NOT_AUTHENTICATED: Refusal = { status: 401, error: 'Not authenticated' };
