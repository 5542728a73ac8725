import type { Identity, PeerAuthentication, SaslConversation } from '@meerkat/core';
import { DigestMd5Client, QuorumLogin } from './digest-md5-client.ts';
import { DigestMd5Server } from './digest-md5-server.ts';
import { GssapiServer } from './kerberos/gssapi-server.ts';
import type { Passwords } from './passwords.ts';
import { parsePrincipal } from './principal.ts';
import { GssapiPeer, QuorumTickets } from './quorum-tickets.ts';
import { gssapiOptions, type KerberosLogin } from './sasl-login.ts';

/** What configuration says about SASL between servers. */
export interface QuorumSaslOptions {
  /** As whom this server logs in where it dials (`quorum.auth.learnerRequireSasl`); null: it does not. */
  readonly credentials: QuorumLogin | QuorumTickets | null;
  /** Whom it knows where it is dialled, by password. */
  readonly users: Passwords;
  /** This service, where others log in by Kerberos; then passwords count for nothing. */
  readonly kerberos: KerberosLogin | null;
  /** Servers that do not log in, or fail to, are let in all the same unless this is so (`quorum.auth.serverRequireSasl`). */
  readonly isRequired: boolean;
}

const SERVICE = 'zookeeper-quorum';
const SERVER_NAME = 'zk-quorum-sasl-md5';

/**
 * @param hosts of the list of members as it is now
 * @throws ServerError when there is a keytab that cannot be used
 */
export function makePeerAuthentication(options: QuorumSaslOptions, hosts: () => readonly string[]): PeerAuthentication {
  const { credentials, isRequired } = options;
  // A keytab that cannot be used stops the start, not the first connection.
  if (credentials instanceof QuorumTickets) credentials.checkKeytab();
  return {
    isRequired,
    startInitiator: (host) => {
      if (credentials === null) return null;
      return credentials instanceof QuorumLogin
        ? new DigestMd5Client(credentials, `${SERVICE}/${SERVER_NAME}`)
        : new GssapiPeer(credentials, host);
    },
    startAcceptor: makeAcceptors(options, hosts),
  };
}

function makeAcceptors({ users, kerberos }: QuorumSaslOptions, hosts: () => readonly string[]): () => SaslConversation {
  if (kerberos === null) {
    const digest = { service: SERVICE, serverName: SERVER_NAME, users, authorize: () => [] };
    return () => new DigestMd5Server(digest);
  }
  const gssapi = gssapiOptions(kerberos, (name, own) => authorizePeer(name, own, hosts()));
  return () => new GssapiServer(gssapi);
}

/**
 * Accepts `any/host@REALM` for a host of the membership and the realm of this server; Apache's servers accept any
 * realm. A name without a host is refused (CVE-2023-44981).
 */
export function authorizePeer(name: string, own: string, hosts: readonly string[]): readonly Identity[] | string {
  const principal = parsePrincipal(name);
  if (principal === null || principal.host === null || principal.realm === null) {
    return `${name} names no host: other servers log in as name/host@REALM`;
  }
  const { host, realm } = principal;
  if (realm !== parsePrincipal(own)?.realm) return `${name} is of another realm than ${own}`;
  const known = hosts.filter((member) => member.toLowerCase() === host.toLowerCase());
  if (known.length === 0) {
    return `${name} is at none of the hosts of the server.N lines: ${hosts.join(', ')}`;
  }
  return known.map((id) => ({ scheme: 'host', id }));
}
