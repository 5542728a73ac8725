/** What the keys about SASL come to: the login is read from its file. */
import { homedir } from 'node:os';
import type { AuthOptions } from '../auth/authenticator.ts';
import { parseSessionSecrets, SECRETS_EXPECTED } from '../auth/session-secrets.ts';
import { QuorumLogin } from '../sasl/digest-md5-client.ts';
import { type JaasEntry, parseJaas } from '../sasl/jaas.ts';
import { Passwords } from '../sasl/passwords.ts';
import type { QuorumSaslOptions } from '../sasl/quorum-sasl.ts';
import { QuorumTickets } from '../sasl/quorum-tickets.ts';
import type { KerberosLogin, SaslLogin } from '../sasl/sasl-login.ts';
import { parseUsersFile } from '../sasl/users-file.ts';
import { describeUnreadable } from '../unreadable-file.ts';
import type { EnsembleSource, Findings, Place } from './ensemble.ts';
import type { ServerOptions } from './options.ts';
import { placeOfProperty } from './properties.ts';

/** The part of the configuration that depends on several of these keys, or on other files. */
/** The secrets of sessions; null without a file, or after a reported fault. */
export function readSessionSecrets(source: EnsembleSource, findings: Findings): ServerOptions['sessionSecrets'] {
  const { sessionSecretFile } = source.draft.sasl;
  if (sessionSecretFile === null) return null;
  const path = source.resolvePath(sessionSecretFile);
  const text = readText(source, findings, path, placeOf(source, 'session.secretFile'));
  if (text === null) return null;
  const parsed = parseSessionSecrets(text);
  if ('rules' in parsed) return { path, rules: parsed.rules };
  findings.fault({ file: path, line: parsed.fault.line, key: null }, parsed.fault.found, SECRETS_EXPECTED);
  return null;
}

/** SASL between servers; null when it is off, or after a reported fault. */
export function readQuorumSasl(source: EnsembleSource, findings: Findings): QuorumSaslOptions | null {
  const { isQuorumEnabled, learnerRequires, serverRequires, ...draft } = source.draft.sasl;
  const demand = (key: string, expected: string): null => {
    findings.fault(placeOf(source, key), 'true', expected);
    return null;
  };
  if (serverRequires && !learnerRequires) return demand(SERVER_REQUIRES, `${LEARNER_REQUIRES}=true beside it`);
  if (learnerRequires && !isQuorumEnabled) return demand(LEARNER_REQUIRES, 'quorum.auth.enableSasl=true beside it');
  if (!isQuorumEnabled) return null;
  const { loginFile, quorumServerSection, learnerSection } = draft;
  if (loginFile === null) {
    return demand('quorum.auth.enableSasl', `${LOGIN_KEY} with sections ${quorumServerSection} and ${learnerSection}`);
  }
  const place = placeOf(source, LOGIN_KEY);
  const server = readJaasSection(source, findings, loginFile, quorumServerSection, place);
  const learner = server && readJaasSection(source, findings, loginFile, learnerSection, place);
  if (server === null || learner === null) return null;
  const acceptor = server.find(isKerberos) ?? null;
  const kerberos = acceptor === null ? null : readKerberosLogin(source, findings, acceptor, loginFile);
  const common = { users: usersOf(server), kerberos, isRequired: serverRequires };
  const [first] = learner;
  if (first !== undefined && isKerberos(first)) {
    const tickets = readTickets(source, findings, first, loginFile);
    return { ...common, credentials: learnerRequires ? tickets : null };
  }
  const [{ options = new Map<string, string>(), line = null } = {}] = learner;
  const [username, password] = [options.get('username'), options.get('password')];
  if (username === undefined || password === undefined) {
    const file = resolveLogin(source, loginFile);
    findings.fault({ file, line, key: null }, `section ${learnerSection} without them`, 'username and password');
    return null;
  }
  return { ...common, credentials: learnerRequires ? new QuorumLogin(username, password) : null };
}

/** The credentials with which this server logs in at others; null after a reported fault. */
function readTickets(
  source: EnsembleSource,
  findings: Findings,
  entry: JaasEntry,
  written: string,
): QuorumTickets | null {
  const { krb5File, quorumServicePrincipal } = source.draft.sasl;
  const configPath = krb5File === null ? null : source.resolvePath(krb5File);
  const common = { configPath, servicePrincipal: quorumServicePrincipal };
  if (entry.options.get('useTicketCache') === 'true' && entry.options.get('keyTab') === undefined) {
    const cache = entry.options.get('ticketCache');
    const cachePath = cache === undefined ? null : source.resolvePath(stripScheme(cache));
    return new QuorumTickets({ ...common, keytabPath: null, principal: null, cachePath });
  }
  const login = readKerberosLogin(source, findings, entry, written);
  return login && new QuorumTickets({ ...common, ...login, cachePath: null });
}

function readKerberosLogin(
  source: EnsembleSource,
  findings: Findings,
  { options, line }: JaasEntry,
  written: string,
): KerberosLogin | null {
  const [keyTab, principal] = [options.get('keyTab'), options.get('principal')];
  if (keyTab === undefined || principal === undefined) {
    const place = { file: resolveLogin(source, written), line, key: null };
    findings.fault(place, 'Krb5LoginModule without one of them', 'useKeyTab=true with keyTab and principal');
    return null;
  }
  return { keytabPath: source.resolvePath(stripScheme(keyTab)), principal };
}

function isKerberos({ module }: JaasEntry): boolean {
  return KERBEROS_MODULE.test(module);
}

function stripScheme(path: string): string {
  return path.replace(/^(?:FILE|file):/, '');
}

const LEARNER_REQUIRES = 'quorum.auth.learnerRequireSasl';
const SERVER_REQUIRES = 'quorum.auth.serverRequireSasl';

export function readSasl(source: EnsembleSource, findings: Findings): Pick<AuthOptions, 'sasl' | 'enforcedSchemes'> {
  return new SaslReader(source, findings).read();
}

class SaslReader {
  readonly #source: EnsembleSource;
  readonly #findings: Findings;

  constructor(source: EnsembleSource, findings: Findings) {
    this.#source = source;
    this.#findings = findings;
  }

  read(): Pick<AuthOptions, 'sasl' | 'enforcedSchemes'> {
    const draft = this.#source.draft.sasl;
    const { isScheme, allowsFailedClients, anyUserAclId, superUsers, rules, removesHost, removesRealm } = draft;
    const login = this.#readLogin();
    if (login === null && draft.requiresSasl) {
      const expected = 'a login to check clients with: java.security.auth.login.config or sasl.usersFile';
      this.#findings.fault(this.#placeOf('sessionRequireClientSASLAuth'), 'true', expected);
    }
    const mapping = { rules, removesHost, removesRealm, defaultRealm: this.#readDefaultRealm() };
    return {
      sasl: { login, isScheme, mapping, superUsers, allowsFailedClients, anyUserAclId },
      enforcedSchemes: this.#readEnforcedSchemes(),
    };
  }

  /** As Apache's server does, SASL alone where the older key asks for it. */
  #readEnforcedSchemes(): readonly string[] {
    const { requiresSasl, isEnforced, enforcedSchemes } = this.#source.draft.sasl;
    if (requiresSasl) return ['sasl'];
    if (isEnforced && enforcedSchemes.length === 0) {
      this.#findings.fault(this.#placeOf('enforce.auth.enabled'), 'true', 'a line such as enforce.auth.schemes=sasl');
    }
    return isEnforced ? enforcedSchemes : [];
  }

  #readLogin(): SaslLogin | null {
    const { loginFile, usersFile, superPassword } = this.#source.draft.sasl;
    if (loginFile !== null && usersFile !== null) {
      const expected = 'this, or java.security.auth.login.config, not both';
      this.#findings.fault(this.#placeOf('sasl.usersFile'), usersFile, expected);
      return null;
    }
    const login = usersFile === null ? this.#readJaasLogin(loginFile) : loginOf(this.#readUsers(usersFile));
    if (login === null || superPassword === null) return login;
    return { ...login, users: login.users.with('super', superPassword) };
  }

  #readUsers(written: string): Passwords | null {
    const file = this.#source.resolvePath(written);
    const text = this.#readText(file, this.#placeOf('sasl.usersFile'));
    if (text === null) return null;
    const parsed = parseUsersFile(text);
    if ('users' in parsed) return new Passwords(parsed.users);
    this.#findings.fault(
      { file, line: parsed.fault.line, key: null },
      parsed.fault.found,
      'name:password, each name once',
    );
    return null;
  }

  #readJaasLogin(written: string | null): SaslLogin | null {
    if (written === null) return null;
    const { loginSection, quorumServerSection } = this.#source.draft.sasl;
    // The file may be there for the servers alone.
    const instead = this.#source.lines.has('sasl.serverconfig') ? null : quorumServerSection;
    const place = this.#placeOf(LOGIN_KEY);
    const entries = readJaasSection(this.#source, this.#findings, written, loginSection, place, instead);
    const kerberos = entries?.find(isKerberos);
    return kerberos === undefined ? loginOf(entries && usersOf(entries)) : this.#readKerberos(kerberos, written);
  }

  #readKerberos(entry: JaasEntry, written: string): SaslLogin | null {
    const kerberos = readKerberosLogin(this.#source, this.#findings, entry, written);
    return kerberos && { users: new Passwords(new Map()), kerberos };
  }

  #readDefaultRealm(): string {
    const { krb5File } = this.#source.draft.sasl;
    if (krb5File === null) return '';
    const text = this.#readText(this.#source.resolvePath(krb5File), this.#placeOf('java.security.krb5.conf'));
    return /^\s*default_realm\s*=\s*(\S+)/m.exec(text ?? '')?.[1] ?? '';
  }

  #readText(path: string, place: Place): string | null {
    return readText(this.#source, this.#findings, path, place);
  }

  #placeOf(key: string): Place {
    return placeOf(this.#source, key);
  }
}

function loginOf(users: Passwords | null): SaslLogin | null {
  return users === null ? null : { users, kerberos: null };
}

/** The options `user_NAME` of all modules of a section. */
function usersOf(entries: readonly JaasEntry[]): Passwords {
  const users = new Map<string, string>();
  for (const { options } of entries) {
    for (const [key, value] of options) {
      if (key.startsWith(USER_PREFIX)) users.set(key.slice(USER_PREFIX.length), value);
    }
  }
  return new Passwords(users);
}

/** Java takes a URL, too. */
function resolveLogin(source: EnsembleSource, written: string): string {
  return source.resolvePath(written.replace(/^file:(?:\/\/)?/, ''));
}

const LOGIN_KEY = 'java.security.auth.login.config';
const USER_PREFIX = 'user_';
const KERBEROS_MODULE = /\bKrb5LoginModule$/;
const DIGEST_MODULE = /\bDigestLoginModule$/;

/**
 * The entries of one section of a JAAS file; null after a fault has been told, or when it may be missing: another one is there instead, or
 * none at all, as in the file that kazoo's tests write. Apache's server has no SASL whenever the section is missing, which is a mistake
 * where there are others.
 *
 * @param instead null: the section is a must
 */
export function readJaasSection(
  source: EnsembleSource,
  findings: Findings,
  written: string,
  section: string,
  place: Place,
  instead: string | null = null,
): readonly JaasEntry[] | null {
  const file = resolveLogin(source, written);
  const text = readText(source, findings, file, place);
  if (text === null) return null;
  const parsed = parseJaas(text, JAVA_PROPERTIES);
  if ('fault' in parsed) {
    findings.fault({ file, line: parsed.fault.line, key: null }, parsed.fault.found, parsed.fault.expected);
    return null;
  }
  const { sections } = parsed;
  const entries = sections.get(section) ?? sections.get('other');
  if (entries === undefined && instead !== null && sections.has(instead)) return null;
  if (sections.size === 0 && instead !== null) {
    findings.warn(place, `names ${file}, which has no section: no client can log in by SASL`);
    return null;
  }
  if (entries === undefined) {
    const found = sections.size === 0 ? 'no section' : `the sections ${[...sections.keys()].join(', ')}`;
    findings.fault({ file, line: null, key: null }, found, `a section named ${section}`);
    return null;
  }
  for (const { module, line } of entries) {
    if (DIGEST_MODULE.test(module) || KERBEROS_MODULE.test(module)) continue;
    findings.fault({ file, line, key: null }, module, 'DigestLoginModule or Krb5LoginModule');
    return null;
  }
  return entries;
}

function readText(source: EnsembleSource, findings: Findings, path: string, place: Place): string | null {
  try {
    return source.readFile(path);
  } catch (error) {
    findings.fault(place, `${path}: ${describeUnreadable(path, error)}`, 'a file that this process can read');
    return null;
  }
}

function placeOf({ file, lines }: EnsembleSource, key: string): Place {
  return { ...placeOfProperty(lines.get(key), file), key };
}

/** Of Java's system properties, those that a login file may want. */
const JAVA_PROPERTIES: ReadonlyMap<string, string> = new Map([
  ['user.home', homedir()],
  ['user.dir', process.cwd()],
]);
