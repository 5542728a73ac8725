import { parsePrincipalRules } from '../sasl/principal.ts';
import { accepted, type Key, security, supported } from './key.ts';
import * as kinds from './kinds.ts';

const file = kinds.text('the path of a file');
const servicePrincipal = {
  expected: 'name/host or name/_HOST, with or without @REALM',
  parse: (text: string) => (/^[^/@\s]+\/[^/@\s]+(@[^/@\s]+)?$/.test(text) && !/_HOST@/.test(text) ? text : null),
};
const rules = {
  expected: 'rules that begin with DEFAULT or RULE:, one behind the other',
  parse: parsePrincipalRules,
};

/** The keys about SASL of clients and about names of Kerberos. What they come to is put together in `sasl.ts`. */
export const SASL_KEYS: readonly Key[] = [
  supported(
    'java.security.auth.login.config',
    file,
    '',
    'JAAS file: users of [SASL](security/sasl.md), keytab of [Kerberos](security/sasl.md#kerberos). Apache: command line only',
    (draft, value) => {
      draft.sasl.loginFile = value;
    },
  ),
  supported('sasl.serverconfig', kinds.text('a name'), 'Server', 'Section of the JAAS file', (draft, value) => {
    draft.sasl.loginSection = value;
  }),
  supported('sasl.usersFile', file, '', 'Lines `name:password` in place of a JAAS file (Meerkat)', (draft, value) => {
    draft.sasl.usersFile = value;
  }),
  supported(
    'SASLAuthenticationProvider.superPassword',
    kinds.text('a password'),
    '',
    "Password of the SASL user `super`, instead of the file's",
    (draft, value) => {
      draft.sasl.superPassword = value;
    },
  ),
  ...['superUser', 'superUser.*'].map((name) =>
    supported(name, kinds.text('a name'), '', 'SASL user for whom no ACL counts', (draft, value) => {
      draft.sasl.superUsers.push(value);
    }),
  ),
  supported(
    'letAnySaslUserDoX',
    kinds.text('a name'),
    '',
    'SASL id that means every SASL user in ACLs',
    (draft, value) => {
      draft.sasl.anyUserAclId = value;
    },
  ),
  supported(
    'allowSaslFailedClients',
    kinds.boolean,
    'false',
    'Keep connections whose SASL exchange failed, unless SASL is required',
    (draft, value) => {
      draft.sasl.allowsFailedClients = value;
    },
  ),
  supported(
    'sessionRequireClientSASLAuth',
    kinds.boolean,
    'false',
    'Serve only clients authenticated by SASL; `enforce.auth.*` does not count then',
    (draft, value) => {
      draft.sasl.requiresSasl = value;
    },
  ),
  supported(
    'enforce.auth.enabled',
    kinds.boolean,
    'false',
    'Serve only clients authenticated by one of `enforce.auth.schemes`',
    (draft, value) => {
      draft.sasl.isEnforced = value;
    },
  ),
  supported(
    'enforce.auth.schemes',
    kinds.words,
    '',
    'Those schemes; `ip` and `digest` prove nothing',
    (draft, value) => {
      draft.sasl.enforcedSchemes = value;
    },
  ),
  supported('security.auth_to_local', rules, 'DEFAULT', 'How principals become SASL ids', (draft, value) => {
    draft.sasl.rules = value;
  }),
  supported(
    'kerberos.removeHostFromPrincipal',
    kinds.boolean,
    'false',
    'Leave the host out of the SASL id',
    (draft, value) => {
      draft.sasl.removesHost = value;
    },
  ),
  supported(
    'kerberos.removeRealmFromPrincipal',
    kinds.boolean,
    'false',
    'Leave the realm out of the SASL id',
    (draft, value) => {
      draft.sasl.removesRealm = value;
    },
  ),
  supported(
    'java.security.krb5.conf',
    file,
    '',
    '`default_realm` for the rule DEFAULT. Apache: command line only',
    (draft, value) => {
      draft.sasl.krb5File = value;
    },
  ),
  supported('audit.enable', kinds.boolean, 'false', 'Write an [audit log](security/audit.md)', (draft, value) => {
    draft.audit.isEnabled = value;
  }),
  supported('audit.file', file, '', 'File of the audit log; default standard output (Meerkat)', (draft, value) => {
    draft.audit.path = value;
  }),
  supported(
    'audit.format',
    kinds.oneOf('text', 'json'),
    'text',
    "Form of the audit log: Apache's lines, or JSON (Meerkat)",
    (draft, value) => {
      draft.audit.format = value === 'json' ? 'json' : 'text';
    },
  ),
  accepted('audit.impl.class', kinds.anything, '', "Apache's choice of a logger"),
  supported(
    'session.secretFile',
    file,
    '',
    'Secrets for [passwords of sessions](security/sessions.md). Same on all servers (Meerkat)',
    (draft, value) => {
      draft.sasl.sessionSecretFile = value;
    },
  ),
  supported(
    'quorum.auth.enableSasl',
    kinds.boolean,
    'false',
    '[SASL between servers](security/quorum-sasl.md): others may log in',
    (draft, value) => {
      draft.sasl.isQuorumEnabled = value;
    },
  ),
  supported('quorum.auth.learnerRequireSasl', kinds.boolean, 'false', 'Log in at other servers', (draft, value) => {
    draft.sasl.learnerRequires = value;
  }),
  supported('quorum.auth.serverRequireSasl', kinds.boolean, 'false', 'Other servers must log in', (draft, value) => {
    draft.sasl.serverRequires = value;
  }),
  supported(
    'quorum.auth.server.saslLoginContext',
    kinds.text('a name'),
    'QuorumServer',
    'JAAS section with the users of other servers',
    (draft, value) => {
      draft.sasl.quorumServerSection = value;
    },
  ),
  supported(
    'quorum.auth.learner.saslLoginContext',
    kinds.text('a name'),
    'QuorumLearner',
    'JAAS section with the user of this server',
    (draft, value) => {
      draft.sasl.learnerSection = value;
    },
  ),
  supported(
    'quorum.auth.kerberos.servicePrincipal',
    servicePrincipal,
    'zkquorum/localhost',
    'Principal of other servers; `_HOST` is the host of their `server.N`',
    (draft, value) => {
      draft.sasl.quorumServicePrincipal = value;
    },
  ),
  accepted('sasl.client*', kinds.anything, '', "Settings of Apache's client"),
  accepted('requireClientAuthScheme', kinds.anything, '', "Apache's server does not know it either"),
  accepted('jaasLoginRenew', kinds.anything, '', "Apache's server does not know it either"),
  security('sasl.*', [], 'Authentication by SASL'),
  security('kerberos.*', ['false'], 'Kerberos'),
];
