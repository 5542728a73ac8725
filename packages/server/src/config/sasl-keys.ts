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
    'JAAS file with the users of SASL, or the keytab of [Kerberos](security/kerberos.md), see [SASL](security/sasl.md). Apache takes it from the command line alone',
    (draft, value) => {
      draft.sasl.loginFile = value;
    },
  ),
  supported('sasl.serverconfig', kinds.text('a name'), 'Server', 'Section of that file', (draft, value) => {
    draft.sasl.loginSection = value;
  }),
  supported(
    'sasl.usersFile',
    file,
    '',
    'Users of SASL in a file of lines `name:password`, in place of a JAAS file. Meerkat only',
    (draft, value) => {
      draft.sasl.usersFile = value;
    },
  ),
  supported(
    'SASLAuthenticationProvider.superPassword',
    kinds.text('a password'),
    '',
    'Password of the SASL user `super`, in place of the one in the file',
    (draft, value) => {
      draft.sasl.superPassword = value;
    },
  ),
  ...['superUser', 'superUser.*'].map((name) =>
    supported(name, kinds.text('a name'), '', 'Id of a SASL user for whom no ACL counts', (draft, value) => {
      draft.sasl.superUsers.push(value);
    }),
  ),
  supported(
    'letAnySaslUserDoX',
    kinds.text('a name'),
    '',
    'ACL entries with this SASL id mean every SASL user',
    (draft, value) => {
      draft.sasl.anyUserAclId = value;
    },
  ),
  supported(
    'allowSaslFailedClients',
    kinds.boolean,
    'false',
    'Leave connections open whose SASL exchange has failed, unless SASL is required',
    (draft, value) => {
      draft.sasl.allowsFailedClients = value;
    },
  ),
  supported(
    'sessionRequireClientSASLAuth',
    kinds.boolean,
    'false',
    'Serve clients only that have authenticated by SASL; the two keys below count for nothing then',
    (draft, value) => {
      draft.sasl.requiresSasl = value;
    },
  ),
  supported(
    'enforce.auth.enabled',
    kinds.boolean,
    'false',
    'Serve clients only that have authenticated by one of `enforce.auth.schemes`',
    (draft, value) => {
      draft.sasl.isEnforced = value;
    },
  ),
  supported(
    'enforce.auth.schemes',
    kinds.words,
    '',
    'Those schemes. `ip` and `digest` prove nothing: everybody has an address, and any password makes an identity',
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
    'krb5.conf, for the `default_realm` of the rule DEFAULT. Apache takes it from the command line alone',
    (draft, value) => {
      draft.sasl.krb5File = value;
    },
  ),
  supported(
    'audit.enable',
    kinds.boolean,
    'false',
    'Write an [audit log](security/audit.md): who has changed what',
    (draft, value) => {
      draft.audit.isEnabled = value;
    },
  ),
  supported('audit.file', file, '', 'Its file; standard output if it is not given. Meerkat only', (draft, value) => {
    draft.audit.path = value;
  }),
  supported(
    'audit.format',
    kinds.oneOf('text', 'json'),
    'text',
    "Apache's lines, or JSON. Meerkat only",
    (draft, value) => {
      draft.audit.format = value === 'json' ? 'json' : 'text';
    },
  ),
  accepted('audit.impl.class', kinds.anything, '', "Apache's choice of a logger; there is one audit log here"),
  supported(
    'session.secretFile',
    file,
    '',
    'Secrets from which the [passwords of sessions](security/sessions.md) are made, the same on every server. Meerkat only',
    (draft, value) => {
      draft.sasl.sessionSecretFile = value;
    },
  ),
  supported(
    'quorum.auth.enableSasl',
    kinds.boolean,
    'false',
    '[SASL between servers](security/quorum-sasl.md): others may log in here',
    (draft, value) => {
      draft.sasl.isQuorumEnabled = value;
    },
  ),
  supported(
    'quorum.auth.learnerRequireSasl',
    kinds.boolean,
    'false',
    'Log in at servers that this one connects to',
    (draft, value) => {
      draft.sasl.learnerRequires = value;
    },
  ),
  supported(
    'quorum.auth.serverRequireSasl',
    kinds.boolean,
    'false',
    'Let no server in that has not logged in',
    (draft, value) => {
      draft.sasl.serverRequires = value;
    },
  ),
  supported(
    'quorum.auth.server.saslLoginContext',
    kinds.text('a name'),
    'QuorumServer',
    'Section of the JAAS file with the users that other servers log in as',
    (draft, value) => {
      draft.sasl.quorumServerSection = value;
    },
  ),
  supported(
    'quorum.auth.learner.saslLoginContext',
    kinds.text('a name'),
    'QuorumLearner',
    'Section of the JAAS file with the user that this server logs in as',
    (draft, value) => {
      draft.sasl.learnerSection = value;
    },
  ),
  supported(
    'quorum.auth.kerberos.servicePrincipal',
    servicePrincipal,
    'zkquorum/localhost',
    'Principal of the servers that this one logs in at by Kerberos; `_HOST` is the host of their server.N line',
    (draft, value) => {
      draft.sasl.quorumServicePrincipal = value;
    },
  ),
  accepted('sasl.client*', kinds.anything, '', "Settings of Apache's client"),
  accepted(
    'requireClientAuthScheme',
    kinds.anything,
    '',
    "Stands in many guides; Apache's server does not know it either",
  ),
  accepted('jaasLoginRenew', kinds.anything, '', "Stands in many guides; Apache's server does not know it either"),
  security('sasl.*', [], 'Authentication by SASL'),
  security('kerberos.*', ['false'], 'Kerberos'),
];
