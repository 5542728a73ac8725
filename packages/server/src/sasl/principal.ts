/**
 * Names of Kerberos, and which name a principal has here: `security.auth_to_local` in the syntax of Hadoop.
 *
 *     principal = primary ["/" host] "@" realm          or any text without "@", which is taken whole
 *     rules     = *rule,   the first that applies decides
 *     rule      = "DEFAULT" | "RULE:[" parts ":" format "]" ["(" pattern ")"] ["s/" from "/" to "/" ["g"]]
 *
 * In a format `$0` is the realm, `$1` the primary, `$2` the host.
 */
export interface Principal {
  readonly primary: string;
  readonly host: string | null;
  readonly realm: string | null;
}

/** Null when it has an "@" and is no principal. */
export function parsePrincipal(name: string): Principal | null {
  const match = PRINCIPAL.exec(name);
  if (match === null) return name.includes('@') ? null : { primary: name, host: null, realm: null };
  const [, primary = '', host, realm = ''] = match;
  return { primary, host: host ?? null, realm };
}

export interface PrincipalMapping {
  readonly rules: readonly PrincipalRule[];
  /** The realm whose principals the rule DEFAULT maps; '' for none. */
  readonly defaultRealm: string;
  readonly removesHost: boolean;
  readonly removesRealm: boolean;
}

/** One rule of `security.auth_to_local`; null is DEFAULT. */
export type PrincipalRule = null | {
  readonly parts: number;
  readonly format: string;
  readonly pattern: RegExp | null;
  readonly from: RegExp | null;
  readonly to: string;
};

export const DEFAULT_PRINCIPAL_MAPPING: PrincipalMapping = {
  rules: [null],
  defaultRealm: '',
  removesHost: false,
  removesRealm: false,
};

/** Null when the text holds something that is no rule. */
export function parsePrincipalRules(text: string): readonly PrincipalRule[] | null {
  const rules: PrincipalRule[] = [];
  let rest = text.trim();
  while (rest !== '') {
    const rule = RULE.exec(rest);
    if (rule === null) return null;
    const [whole, isDefault, parts = '', format = '', pattern, from, to = '', isGlobal] = rule;
    rest = rest.slice(whole.length).trimStart();
    if (isDefault !== undefined) {
      rules.push(null);
      continue;
    }
    const compiled = [pattern === undefined ? '' : `^(?:${pattern})$`, from ?? ''].map(compile);
    if (parts === '' || compiled.includes(null)) return null;
    rules.push({
      parts: Number(parts),
      format,
      pattern: pattern === undefined ? null : new RegExp(`^(?:${pattern})$`),
      from: from === undefined ? null : new RegExp(from, isGlobal === undefined ? '' : 'g'),
      to,
    });
  }
  return rules;
}

/** The id under which an authenticated name is known, or null: no rule is for it, or it maps to no simple name. */
export function mapPrincipal(name: string, mapping: PrincipalMapping): string | null {
  const principal = parsePrincipal(name);
  if (principal === null) return null;
  const { primary, host, realm } = principal;
  const short = realm === null ? primary : mapName({ primary, host, realm }, mapping);
  if (short === null) return null;
  const hostPart = host === null || mapping.removesHost ? '' : `/${host}`;
  const realmPart = realm === null || mapping.removesRealm ? '' : `@${realm}`;
  return short + hostPart + realmPart;
}

function mapName({ primary, host, realm }: Principal & { realm: string }, mapping: PrincipalMapping): string | null {
  const parts = host === null ? [realm, primary] : [realm, primary, host];
  for (const rule of mapping.rules) {
    const name = applyRule(rule, parts, mapping.defaultRealm);
    if (name !== null) return /[/@]/.test(name) ? null : name;
  }
  return null;
}

function applyRule(rule: PrincipalRule, parts: readonly string[], defaultRealm: string): string | null {
  const [realm = '', primary = ''] = parts;
  if (rule === null) return realm === defaultRealm ? primary : null;
  if (rule.parts !== parts.length - 1) return null;
  const base = rule.format.replaceAll(/\$(\d+)/g, (_, number: string) => parts[Number(number)] ?? '');
  if (rule.pattern !== null && !rule.pattern.test(base)) return null;
  return rule.from === null ? base : base.replace(rule.from, rule.to);
}

function compile(source: string): RegExp | null {
  try {
    return new RegExp(source);
  } catch {
    return null;
  }
}

const PRINCIPAL = /^([^/@]*)(?:\/([^/@]*))?@([^/@]*)$/;
const RULE = /^\s*(?:(DEFAULT)|RULE:\[(\d*):([^\]]*)](?:\(([^)]*)\))?(?:s\/([^/]*)\/([^/]*)\/(g)?)?)/;
