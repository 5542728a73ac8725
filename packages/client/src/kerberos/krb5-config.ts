/**
 * krb5.conf, as far as a client needs it.
 *
 *     [section]
 *     name = value
 *     name = {
 *       name = value
 *     }
 *     include FILE, includedir DIRECTORY
 *
 * `#` and `;` at the beginning of a line begin a comment. A name may come several times.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { KerberosError } from './kerberos-error.ts';

/** Realms and their centers. */
export interface Krb5Config {
  /** Where it was read, for messages. */
  readonly path: string;
  /** The realm of names without one; null when it is not given. */
  readonly defaultRealm: string | null;
  /** The default cache of `kinit`, with `%{uid}` etc. unexpanded; null when it is not given. */
  readonly defaultCacheName: string | null;
  /** Whether to use DNS where the file names no key distribution center. */
  readonly looksUpKdcs: boolean;
  /** `host` or `host:port`, by realm. */
  readonly kdcs: ReadonlyMap<string, readonly string[]>;
  /** Realms of hosts and, with a leading dot, of all names below a domain. Names are in lower case. */
  readonly realmOfDomain: ReadonlyMap<string, string>;
}

/**
 * @param path several files are separated by colons; the first one takes precedence
 * @throws KerberosError when one cannot be read; a missing file counts as empty
 */
export function readKrb5Config(path: string): Krb5Config {
  const files = path.split(':');
  const lines = files.flatMap((file) => linesOf(file, 0));
  const values = valuesOf(lines);
  const first = (name: string): string | null => values.get(name)?.[0] ?? null;
  const kdcs = new Map<string, readonly string[]>();
  const realmOfDomain = new Map<string, string>();
  for (const [name, found] of values) {
    const [section, middle = '', last] = name.split('\n');
    if (section === 'realms' && last === 'kdc') kdcs.set(middle, found);
    if (section === 'domain_realm' && last === undefined) realmOfDomain.set(middle.toLowerCase(), found[0] ?? '');
  }
  return {
    path: files.some((file) => existsSync(file)) ? path : `${path} (there is no such file)`,
    defaultRealm: first('libdefaults\ndefault_realm'),
    defaultCacheName: first('libdefaults\ndefault_ccache_name'),
    looksUpKdcs: !isFalse(first('libdefaults\ndns_lookup_kdc')),
    kdcs,
    realmOfDomain,
  };
}

/** The realm of a host's services by `[domain_realm]`; null when it is not given. */
export function realmOfHost({ realmOfDomain }: Krb5Config, host: string): string | null {
  const exact = realmOfDomain.get(host);
  if (exact !== undefined) return exact;
  for (let dot = host.indexOf('.'); dot >= 0; dot = host.indexOf('.', dot + 1)) {
    const realm = realmOfDomain.get(host.slice(dot)) ?? realmOfDomain.get(host.slice(dot + 1));
    if (realm !== undefined) return realm;
  }
  return null;
}

/** Values by section and names, separated by line breaks. */
function valuesOf(lines: readonly string[]): Map<string, string[]> {
  const values = new Map<string, string[]>();
  let section = '';
  const open: string[] = [];
  for (const line of lines) {
    const header = /^\[([^\]]+)\]/.exec(line);
    if (header !== null) {
      section = header[1] ?? '';
      open.length = 0;
      continue;
    }
    if (line.startsWith('}')) {
      open.pop();
      continue;
    }
    const pair = /^([^=]+?)\s*\*?\s*=\s*(.*?)\s*$/.exec(line);
    if (pair === null) continue;
    const [, name = '', value = ''] = pair;
    if (value.startsWith('{')) {
      open.push(name);
      continue;
    }
    const key = [section, ...open, name].join('\n');
    const plain = value.replace(/^"(.*)"$/, '$1');
    values.set(key, [...(values.get(key) ?? []), plain]);
  }
  return values;
}

function linesOf(path: string, depth: number): readonly string[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return [];
    throw new KerberosError(`${path} cannot be read: ${code ?? message}; correct its rights, or KRB5_CONFIG`);
  }
  return text.split(/\r?\n/).flatMap((raw) => {
    const line = raw.trim();
    if (/^[#;]/.test(line)) return [];
    const [, word = '', target = ''] = /^(include|includedir)\s+(\S+)$/.exec(line) ?? [];
    if (word === '' || depth >= INCLUDE_DEPTH_MAX) return [line];
    const files = word === 'include' ? [target] : filesBelow(target);
    return files.flatMap((file) => linesOf(file, depth + 1));
  });
}

/** As accepted by MIT Kerberos: names of letters, digits, `-` and `_`, or with the suffix `.conf`. */
function filesBelow(directory: string): readonly string[] {
  try {
    const names = readdirSync(directory).filter((name) => /^[\w-]+$|^[^.].*\.conf$/.test(name));
    return names.sort().map((name) => join(directory, name));
  } catch {
    return [];
  }
}

function isFalse(value: string | null): boolean {
  return value !== null && /^(false|no|n|f|off|0|nil)$/i.test(value);
}

const INCLUDE_DEPTH_MAX = 8;
