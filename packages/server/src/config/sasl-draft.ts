import { type PrincipalRule, parsePrincipalRules } from '../sasl/principal.ts';

/** The keys about SASL while the file is being read. */
export interface SaslDraft {
  /** As written. */
  loginFile: string | null;
  loginSection: string;
  usersFile: string | null;
  superPassword: string | null;
  /** `session.secretFile`, as written. */
  sessionSecretFile: string | null;
  isScheme: boolean;
  /** What `enforce.auth.enabled`, `enforce.auth.schemes` and `sessionRequireClientSASLAuth` say. */
  isEnforced: boolean;
  enforcedSchemes: readonly string[];
  requiresSasl: boolean;
  allowsFailedClients: boolean;
  anyUserAclId: string | null;
  readonly superUsers: string[];
  rules: readonly PrincipalRule[];
  removesHost: boolean;
  removesRealm: boolean;
  krb5File: string | null;
  /** `quorum.auth.*` */
  isQuorumEnabled: boolean;
  learnerRequires: boolean;
  serverRequires: boolean;
  learnerSection: string;
  quorumServerSection: string;
  quorumServicePrincipal: string;
}

export function makeSaslDraft(): SaslDraft {
  return {
    loginFile: null,
    loginSection: 'Server',
    usersFile: null,
    superPassword: null,
    sessionSecretFile: null,
    isScheme: false,
    isEnforced: false,
    enforcedSchemes: [],
    requiresSasl: false,
    allowsFailedClients: false,
    anyUserAclId: null,
    superUsers: [],
    rules: parsePrincipalRules('DEFAULT') ?? [],
    removesHost: false,
    removesRealm: false,
    krb5File: null,
    isQuorumEnabled: false,
    learnerRequires: false,
    serverRequires: false,
    learnerSection: 'QuorumLearner',
    quorumServerSection: 'QuorumServer',
    quorumServicePrincipal: 'zkquorum/localhost',
  };
}
