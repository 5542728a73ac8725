/** The kinds of values of the keys about TLS. */
import { findCipherSuite } from '../tls/cipher-suites.ts';
import { type ClientAuth, TlsProtocol } from '../tls/options.ts';
import { type Kind, words } from './kinds.ts';

export const storeType: Kind<string> = {
  expected: 'JKS, PEM or PKCS12 (BCFKS needs a library of Java: convert it)',
  parse: (value) => (['JKS', 'PEM', 'PKCS12', ''].includes(value.toUpperCase()) ? value : null),
};

export const clientAuth: Kind<ClientAuth> = {
  expected: 'none, want or need',
  parse(value) {
    const word = value.toLowerCase();
    return word === 'none' || word === 'want' || word === 'need' ? word : null;
  },
};

const SPOKEN: readonly string[] = Object.values(TlsProtocol);

/** One version, or with TLS all of them. */
export const protocol: Kind<TlsProtocol | 'TLS'> = {
  expected: 'TLSv1.2, TLSv1.3 or TLS',
  parse: (value) => (value === 'TLS' ? value : SPOKEN.includes(value) ? (value as TlsProtocol) : null),
};

export const protocols: Kind<{ readonly spoken: readonly TlsProtocol[]; readonly leftOut: readonly string[] }> = {
  expected: 'TLSv1.2, TLSv1.3, or both with a comma between them',
  parse(value) {
    const all = words.parse(value) ?? [];
    const isKnown = all.every((word) => SPOKEN.includes(word) || /^(TLSv1(\.1)?|SSLv3|SSLv2Hello)$/.test(word));
    const spoken = all.filter((word) => SPOKEN.includes(word)) as TlsProtocol[];
    return isKnown && spoken.length > 0 ? { spoken, leftOut: all.filter((word) => !SPOKEN.includes(word)) } : null;
  },
};

export const cipherSuites: Kind<readonly string[]> = {
  expected:
    'names of cipher suites with commas between them, such as TLS_AES_256_GCM_SHA384 or TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
  parse(value) {
    const found = (words.parse(value) ?? []).map(findCipherSuite);
    return found.length === 0 || found.includes(null) ? null : (found as string[]);
  },
};

export function isFalse(why: string): Kind<boolean> {
  return {
    expected: `false: ${why}, and without it the server would be less safe than this file says`,
    parse: (value) => (value.toLowerCase() === 'false' ? false : null),
  };
}
