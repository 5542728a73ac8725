import type { Compression } from '@meerkat/core';

/**
 * The kinds of values in zoo.cfg. A kind says in words what it expects, and reads a text as Java's parser of that kind
 * does where ZooKeeper uses one.
 */
export interface Kind<T> {
  /** What is expected, for people: "a whole number from 0 to 65535". */
  readonly expected: string;
  /** The value; null when the text is invalid. */
  parse(text: string): T | null;
}

const INT_MAX = 0x7fffffff;

export interface Range {
  readonly min: number;
  readonly max?: number;
  /** What the number counts: "ms", "KiB". */
  readonly unit?: string;
}

/** A decimal number as `Integer.parseInt` reads it. */
export function integer(range: Range): Kind<number> {
  const { min, max = INT_MAX, unit } = range;
  return {
    expected: `a whole number from ${min} to ${max}${unit === undefined ? '' : ` (${unit})`}`,
    parse(text) {
      if (!/^[+-]?\d{1,16}$/.test(text)) return null;
      const value = Number(text);
      return value >= min && value <= max ? value : null;
    },
  };
}

/** A number as `Integer.decode` reads it: decimal, `0x…`, `#…` or, with a leading zero, octal. */
export function decodedInteger(range: Range): Kind<number> {
  const decimal = integer(range);
  return {
    expected: `${decimal.expected}, decimal or as 0x…`,
    parse(text) {
      const match = /^([+-]?)(?:(?:0[xX]|#)([0-9a-fA-F]+)|0([0-7]+))$/.exec(text);
      if (match === null) return decimal.parse(text);
      const value = match[2] === undefined ? Number.parseInt(match[3] ?? '', 8) : Number.parseInt(match[2], 16);
      return decimal.parse(`${match[1] ?? ''}${value}`);
    },
  };
}

export const decimal: Kind<number> = {
  expected: 'a number such as 0.33',
  parse: (text) => (/^[+-]?(\d{1,9}(\.\d{0,9})?|\.\d{1,9})$/.test(text) ? Number(text) : null),
};

export const boolean: Kind<boolean> = {
  expected: 'true or false',
  parse: (text) => oneOfIgnoringCase(text, ['true', 'false'], [true, false]),
};

/** ZooKeeper compares these with "yes"; what is neither word is a mistake here. */
export const yesOrNo: Kind<boolean> = {
  expected: 'yes or no',
  parse: (text) => oneOfIgnoringCase(text, ['yes', 'no'], [true, false]),
};

export function text(expected: string, isValid: (text: string) => boolean = (value) => value !== ''): Kind<string> {
  return { expected, parse: (value) => (isValid(value) ? value : null) };
}

export function oneOf(...values: readonly string[]): Kind<string> {
  return { expected: values.join(' or '), parse: (value) => (values.includes(value) ? value : null) };
}

/** In upper or lower case, as Apache compares it; '' = none. */
export const compression: Kind<Compression | ''> = {
  expected: 'gz, snappy or nothing',
  parse: (value) => oneOfIgnoringCase<Compression | ''>(value, ['gz', 'snappy', ''], ['gz', 'snappy', '']),
};

export const path: Kind<string> = text('the path of a directory', (value) => value !== '' && !value.includes('\0'));

/** Names or addresses of one host, without brackets afterwards. */
export const host: Kind<string> = {
  expected: 'a host name or an address',
  parse(value) {
    const bare = /^\[(.*)\]$/.exec(value)?.[1] ?? value;
    return /^[0-9A-Za-z._:%-]+$/.test(bare) ? bare : null;
  },
};

const INTERVAL_UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds; a bare number counts hours, as in `autopurge.purgeInterval`. */
export const intervalInHours: Kind<number> = {
  expected: 'a number of hours, or a number with ms, s, m, h or d behind it',
  parse(value) {
    const match = /^(\d{1,9})\s*(ms|s|m|h|d)?$/.exec(value);
    return match === null ? null : Number(match[1]) * (INTERVAL_UNITS_MS[match[2] ?? 'h'] ?? 0);
  },
};

/** Words between commas, blanks around them not counted. */
export const words: Kind<readonly string[]> = {
  expected: 'words with commas between them, or *',
  parse: (value) =>
    value
      .split(',')
      .map((word) => word.trim())
      .filter((word) => word !== ''),
};

/** OpenSSL's names of the hashes that Java's MessageDigest knows, by Java's names in upper case. */
const HASHES: Readonly<Record<string, string>> = {
  MD5: 'md5',
  SHA: 'sha1',
  SHA1: 'sha1',
  'SHA-1': 'sha1',
  'SHA-224': 'sha224',
  'SHA-256': 'sha256',
  'SHA-384': 'sha384',
  'SHA-512': 'sha512',
  'SHA-512/224': 'sha512-224',
  'SHA-512/256': 'sha512-256',
  'SHA3-224': 'sha3-224',
  'SHA3-256': 'sha3-256',
  'SHA3-384': 'sha3-384',
  'SHA3-512': 'sha3-512',
};

export const hash: Kind<string> = {
  expected: `the name of a hash: ${Object.keys(HASHES).join(', ')}`,
  parse(value) {
    const name = value.toUpperCase();
    return Object.hasOwn(HASHES, name) ? (HASHES[name] ?? null) : null;
  },
};

const APACHE_PROVIDERS = 'org.apache.zookeeper.server.auth.';
export const X509_PROVIDER: string = `${APACHE_PROVIDERS}X509AuthenticationProvider`;
/** Those whose schemes are always there, or made of certificates. */
export const OWN_PROVIDERS: readonly string[] = [
  'DigestAuthenticationProvider',
  'IPAuthenticationProvider',
  'X509AuthenticationProvider',
].map((name) => APACHE_PROVIDERS + name);

/** The class whose scheme `sasl` is there when it is named. */
export const SASL_PROVIDER: string = `${APACHE_PROVIDERS}SASLAuthenticationProvider`;
export const ENSEMBLE_PROVIDER: string = `${APACHE_PROVIDERS}EnsembleAuthenticationProvider`;
export const KEY_PROVIDER: string = `${APACHE_PROVIDERS}KeyAuthenticationProvider`;
const KNOWN_PROVIDERS: readonly string[] = [...OWN_PROVIDERS, SASL_PROVIDER, ENSEMBLE_PROVIDER, KEY_PROVIDER];

/** The path of a module, as `authProvider.N` may name it in place of a class. */
export function isModulePath(value: string): boolean {
  return /^[./]|\.[cm]?js$/.test(value);
}

export const authProvider: Kind<string> = {
  expected:
    "the path of a module, or the name of a class, but for those of Apache's own that this version does not support: without them the server would be less safe than this file says",
  parse: (value) => (value.startsWith(APACHE_PROVIDERS) && !KNOWN_PROVIDERS.includes(value) ? null : value),
};

export const anything: Kind<string> = text('a text', () => true);

function oneOfIgnoringCase<T>(text: string, names: readonly string[], values: readonly T[]): T | null {
  return values[names.indexOf(text.toLowerCase())] ?? null;
}
