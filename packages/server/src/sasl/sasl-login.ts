import type { Identity, PeerAddress, SaslConversation } from '@meerkat/core';
import { DigestMd5Server } from './digest-md5-server.ts';
import { GssapiServer, type GssapiServerOptions } from './kerberos/gssapi-server.ts';
import { KeytabFile } from './kerberos/keytab-file.ts';
import { ReplayCache } from './kerberos/replay-cache.ts';
import type { Passwords } from './passwords.ts';
import { DEFAULT_PRINCIPAL_MAPPING, mapPrincipal, type PrincipalMapping } from './principal.ts';

/** With what SASL exchanges are checked. */
export interface SaslLogin {
  /** Of DIGEST-MD5. */
  readonly users: Passwords;
  /** This service in Kerberos; then there is GSSAPI and nothing else. */
  readonly kerberos: KerberosLogin | null;
}

export interface KerberosLogin {
  /** Absolute. */
  readonly keytabPath: string;
  /** `zookeeper/host`, with or without realm. */
  readonly principal: string;
}

/** What configuration says about SASL of clients. */
export interface SaslOptions {
  /** null: no login is configured, and clients continue without SASL. */
  readonly login: SaslLogin | null;
  /** The scheme `sasl` exists for ACLs and enforcement (`authProvider.N=…SASLAuthenticationProvider`). */
  readonly isScheme: boolean;
  /** From the authenticated name to the id. */
  readonly mapping: PrincipalMapping;
  /** Ids that are the super user's (`superUser`, `superUser.*`). */
  readonly superUsers: readonly string[];
  /** A failed exchange leaves the connection as it was (`allowSaslFailedClients`). */
  readonly allowsFailedClients: boolean;
  /** The id that stands for any SASL user in an ACL (`letAnySaslUserDoX`); null: none does. */
  readonly anyUserAclId: string | null;
}

export const DEFAULT_SASL_OPTIONS: SaslOptions = {
  login: null,
  isScheme: false,
  mapping: DEFAULT_PRINCIPAL_MAPPING,
  superUsers: [],
  allowsFailedClients: false,
  anyUserAclId: null,
};

/**
 * What `Authenticator.startSasl` does.
 *
 * @throws ServerError when there is a keytab that cannot be used
 */
export function makeSaslStarter(options: SaslOptions): (remote: PeerAddress) => SaslConversation | null {
  const { login } = options;
  if (login === null) return () => null;
  if (login.kerberos !== null) return startGssapi(login.kerberos, options);
  const digest = {
    service: 'zookeeper',
    serverName: 'zk-sasl-md5',
    users: login.users,
    authorize: (name: string) => authorize(name, options),
  };
  return () => new DigestMd5Server(digest);
}

function startGssapi(login: KerberosLogin, options: SaslOptions): () => SaslConversation {
  const gssapi = gssapiOptions(login, (name) => authorize(name, options));
  return () => new GssapiServer(gssapi);
}

/**
 * What all exchanges of a service share.
 *
 * @param authorize is given the principal of this service, too
 * @throws ServerError when the keytab cannot be used
 */
export function gssapiOptions(
  { keytabPath, principal }: KerberosLogin,
  authorize: (name: string, own: string) => readonly Identity[] | string,
): GssapiServerOptions {
  const file = new KeytabFile(keytabPath);
  const own = file.resolvePrincipal(principal);
  return {
    principal: own,
    keytab: (mustBeNew) => file.get(mustBeNew, Date.now()),
    keytabFault: () => file.fault,
    replays: new ReplayCache(),
    nowMs: () => Date.now(),
    authorize: (name) => authorize(name, own),
  };
}

/**
 * As whom a client is known that has proved a name.
 *
 * Apache's server takes the id that the client asks for where no rule maps its name; here that is a failure.
 */
export function authorize(name: string, { mapping, superUsers }: SaslOptions): readonly Identity[] | string {
  const id = mapPrincipal(name, mapping);
  if (id === null) return `no rule of security.auth_to_local maps ${JSON.stringify(name)} to a name`;
  const identity = { scheme: 'sasl', id };
  return superUsers.includes(id) ? [identity, { scheme: 'super', id: '' }] : [identity];
}
