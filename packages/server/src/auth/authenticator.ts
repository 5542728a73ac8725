import { createHash } from 'node:crypto';
import { type Authenticator, SaslFailure } from '@meerkat/core';
import { ExitCode, ServerError } from '../exit-codes.ts';
import { parsePrincipal } from '../sasl/principal.ts';
import { DEFAULT_SASL_OPTIONS, makeSaslStarter, type SaslOptions } from '../sasl/sasl-login.ts';
import { type EnsembleAnswers, KEY_SCHEME, makeEnsembleScheme } from './apache-schemes.ts';
import { formatIp, IpNetwork, parseIp } from './ip-address.ts';
import type { Scheme } from './scheme.ts';
import { identitiesOfCertificate, isAlternativeName, isDistinguishedName, type X509Options } from './x509.ts';

/** What configuration says about the schemes of authentication. */
export interface AuthOptions extends X509Options {
  /** False: the scheme `digest` does not exist (`DigestAuthenticationProvider.enabled`). */
  readonly digestEnabled: boolean;
  /** OpenSSL's name of the hash: `sha1`, `sha256` (`DigestAuthenticationProvider.digestAlg`). */
  readonly digestAlgorithm: string;
  /** `user:hash` of the super user, null for none (`DigestAuthenticationProvider.superDigest`). */
  readonly superDigest: string | null;
  /** Classes of `authProvider.*` that are not known here: their schemes are not offered. */
  readonly unknownProviders: readonly string[];
  readonly sasl: SaslOptions;
  /** Names of this ensemble, one of which clients with the scheme `ensemble` must say (`ensembleAuthName`); null: no such scheme. */
  readonly ensembleNames: readonly string[] | null;
  /** The scheme `key` of Apache's KeyAuthenticationProvider exists. */
  readonly keyEnabled: boolean;
  /** Absolute paths of modules with schemes of the user's own (`authProvider.N=/path`). */
  readonly providerModules: readonly string[];
  /** A connection must have an identity of one of these schemes to do anything (`enforce.auth.schemes`); none: anybody may. */
  readonly enforcedSchemes: readonly string[];
}

export const DEFAULT_AUTH_OPTIONS: AuthOptions = {
  digestEnabled: true,
  digestAlgorithm: 'sha1',
  superDigest: null,
  x509Enabled: false,
  x509SuperUser: null,
  x509AlternativeNames: false,
  unknownProviders: [],
  sasl: DEFAULT_SASL_OPTIONS,
  ensembleNames: null,
  keyEnabled: false,
  providerModules: [],
  enforcedSchemes: [],
};

/** Those that need no provider, or one that is always here. */
const SCHEMES_WITHOUT_PROVIDER: ReadonlySet<string> = new Set(['', 'world', 'digest', 'ip', 'super']);

/**
 * The schemes `ip`, unless it is switched off `digest`, `x509` where clients can show certificates, and those of the
 * configuration.
 *
 * @param own schemes of the user's own, by their names
 * @param answers counts what clients say of the scheme `ensemble`
 * @throws ServerError when a scheme that connections must have does not exist
 */
export function makeAuthenticator(
  options: AuthOptions,
  own: ReadonlyMap<string, Scheme> = new Map(),
  answers: EnsembleAnswers = { success: 0, fail: 0, skip: 0 },
): Authenticator {
  const schemes = new Map<string, Scheme>([...own, ['ip', IP_SCHEME]]);
  if (options.ensembleNames !== null) schemes.set('ensemble', makeEnsembleScheme(options.ensembleNames, answers));
  if (options.keyEnabled) schemes.set('key', KEY_SCHEME);
  if (options.digestEnabled) schemes.set('digest', makeDigestScheme(options));
  if (options.sasl.isScheme) schemes.set('sasl', makeSaslScheme(options.sasl));
  if (options.x509Enabled) schemes.set('x509', makeX509Scheme(options));
  const { enforcedSchemes } = options;
  checkEnforced(enforcedSchemes, schemes);
  return {
    startSasl: makeSaslStarter(options.sasl),
    saslFailure: saslFailureOf(options),
    isAdmitted: (identities) =>
      enforcedSchemes.length === 0 || identities.some(({ scheme }) => enforcedSchemes.includes(scheme)),
    initialIdentities(remote, certificate) {
      const ip = { scheme: 'ip', id: formatIp(remote.ip) };
      return certificate === null || !options.x509Enabled
        ? [ip]
        : [ip, ...identitiesOfCertificate(certificate, options)];
    },
    authenticate: (scheme, auth, remote, certificate, dataOf = () => null) =>
      schemes.get(scheme)?.authenticate(auth, remote, certificate, dataOf) ?? null,
    refusesSilently: (scheme) => schemes.get(scheme)?.refusesSilently ?? false,
    isValidAclId: (scheme, id) => schemes.get(scheme)?.isValidAclId(id) ?? false,
    isAuthenticatedScheme: (scheme) => schemes.get(scheme)?.isAuthenticated ?? false,
    isExact: (scheme) => schemes.get(scheme)?.isExact ?? false,
    refusalOf: (used) => describeMissing(options.unknownProviders, used, schemes),
    matches: (scheme, identityId, aclId) => schemes.get(scheme)?.matches(identityId, aclId) ?? false,
    userName: (identity) => schemes.get(identity.scheme)?.userName(identity.id) ?? '',
  };
}

/** A provider that is not known here may be the one that ACLs rely on. Which scheme it has, only the class itself says. */
function describeMissing(
  unknown: readonly string[],
  used: ReadonlySet<string>,
  provided: ReadonlyMap<string, Scheme>,
): string | null {
  const missing = [...used].filter((scheme) => !SCHEMES_WITHOUT_PROVIDER.has(scheme) && !provided.has(scheme));
  if (unknown.length === 0 || missing.length === 0) return null;
  const schemes = missing.map((scheme) => JSON.stringify(scheme)).join(', ');
  return (
    `ACLs of this directory name the scheme ${schemes}, and authProvider names ${unknown.join(', ')}, which this server does not have: ` +
    'these ACLs would grant nothing. Change them on a server with the provider, or take the authProvider line out of the configuration to start without it'
  );
}

function checkEnforced(enforced: readonly string[], schemes: ReadonlyMap<string, Scheme>): void {
  const missing = enforced.filter((scheme) => !schemes.has(scheme));
  if (missing.length === 0) return;
  throw new ServerError(
    ExitCode.invocation,
    `clients must authenticate by ${missing.join(', ')} (enforce.auth.schemes, sessionRequireClientSASLAuth), and there is no such scheme: ` +
      `the schemes are ${[...schemes.keys()].join(', ')}; sasl needs authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider`,
  );
}

/** That SASL is required wins over `allowSaslFailedClients`. */
function saslFailureOf({ enforcedSchemes, sasl }: AuthOptions): SaslFailure {
  if (enforcedSchemes.includes('sasl')) return SaslFailure.closesAsRequired;
  return sasl.allowsFailedClients ? SaslFailure.isIgnored : SaslFailure.closes;
}

/**
 * `sasl` in ACLs (SASLAuthenticationProvider). Its identities come from SASL exchanges and never from auth packets. The user
 * `super` is meant by every entry.
 */
function makeSaslScheme({ anyUserAclId }: SaslOptions): Scheme {
  return {
    isAuthenticated: true,
    isExact: false,
    authenticate: () => null,
    isValidAclId: (id) => parsePrincipal(id) !== null,
    matches: (identityId, aclId) => identityId === 'super' || identityId === aclId || aclId === anyUserAclId,
    userName: (id) => id,
  };
}

/** The id of a digest identity: `user:base64(hash("user:password"))`, the user being what stands before the first ":". */
export function makeDigestId(credentials: string, algorithm: string): string {
  const colon = credentials.indexOf(':');
  const user = colon < 0 ? credentials : credentials.slice(0, colon);
  return `${user}:${createHash(algorithm).update(credentials, 'utf8').digest('base64')}`;
}

/**
 * `digest` (DigestAuthenticationProvider). Every offer is accepted, an empty one too: what it is worth shows when an ACL
 * names it. No offer at all is refused.
 */
function makeDigestScheme(options: AuthOptions): Scheme {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  return {
    isAuthenticated: true,
    isExact: true,
    authenticate(auth) {
      if (auth === null) return null;
      const id = makeDigestId(decoder.decode(auth), options.digestAlgorithm);
      const identity = { scheme: 'digest', id };
      return id === options.superDigest ? [{ scheme: 'super', id: '' }, identity] : [identity];
    },
    isValidAclId: (id) => javaSplit(id, ':').length === 2,
    matches: (identityId, aclId) => identityId === aclId,
    userName: (id) => javaSplit(id, ':')[0] ?? '',
  };
}

/**
 * `x509` (X509AuthenticationProvider). The certificate has been checked when the client connected, so that an auth packet
 * adds nothing.
 */
function makeX509Scheme(options: AuthOptions): Scheme {
  return {
    isAuthenticated: true,
    isExact: true,
    authenticate: (_auth, _remote, certificate) =>
      certificate === null ? null : identitiesOfCertificate(certificate, options),
    isValidAclId: (id) => isDistinguishedName(id) || (options.x509AlternativeNames && isAlternativeName(id)),
    matches: (identityId, aclId) => identityId === aclId,
    userName: (id) => id,
  };
}

/** `ip` (IPAuthenticationProvider): an address, or a network written as `address/bits`. */
const IP_SCHEME: Scheme = {
  isAuthenticated: false,
  isExact: false,
  authenticate: (_auth, remote) => [{ scheme: 'ip', id: formatIp(remote.ip) }],
  isValidAclId: (id) => NETWORK.read(id),
  matches(identityId, aclId) {
    if (identityId !== comparedId) {
      comparedId = identityId;
      comparedIp = parseIp(identityId);
    }
    return comparedIp !== null && NETWORK.read(aclId) && NETWORK.contains(comparedIp);
  },
  userName: (id) => id,
};

const NETWORK = new IpNetwork();
/** The identity that was compared last: it is compared with one entry of a list after the other. */
let comparedId = '';
let comparedIp: Uint8Array | null = null;

/** Java's `String.split`, which drops empty parts at the end: "a:" has one part and ":b" has two. */
function javaSplit(text: string, separator: string): string[] {
  const parts = text.split(separator);
  while (parts.length > 0 && parts.at(-1) === '') parts.pop();
  return parts;
}
