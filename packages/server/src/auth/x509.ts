import type { Identity, PeerCertificate } from '@meerkat/core';

/** What configuration says about identities from certificates. */
export interface X509Options {
  /** The scheme `x509` exists: there is a port on which clients can show certificates. */
  readonly x509Enabled: boolean;
  /** The subject of certificates that make a super user, null for none (`X509AuthenticationProvider.superUser`). */
  readonly x509SuperUser: string | null;
  /** The alternative names of a certificate are identities too. */
  readonly x509AlternativeNames: boolean;
}

/**
 * What a client's certificate, which was checked when it connected, makes it: `x509` with the subject, and the super user
 * when configuration says so (X509AuthenticationProvider).
 */
export function identitiesOfCertificate(
  { subject, alternativeNames }: PeerCertificate,
  { x509SuperUser, x509AlternativeNames }: X509Options,
): readonly Identity[] {
  const names = x509AlternativeNames ? [subject, ...alternativeNames] : [subject];
  const identities = names.map((id) => ({ scheme: 'x509', id }));
  return subject === x509SuperUser ? [{ scheme: 'super', id: subject }, ...identities] : identities;
}

/** Names of attributes that Java knows in a distinguished name. */
const KEYWORDS =
  /^(CN|C|L|S|ST|O|OU|T|IP|STREET|DC|DNQUALIFIER|DNQ|SURNAME|GIVENNAME|INITIALS|GENERATION|EMAIL|EMAILADDRESS|UID|SERIALNUMBER)$/i;
const OBJECT_IDENTIFIER = /^(OID\.)?\d+(\.\d+)+$/i;
/** Two hexadecimal digits, or one of the characters that need it. */
const ESCAPE = /\\(?:[0-9a-fA-F]{2}|[ ,=+<>#;"\\])/g;

/**
 * Whether Java takes a text for a distinguished name, the empty one included. Other spellings of one name are other ids:
 * ZooKeeper compares texts.
 */
export function isDistinguishedName(text: string): boolean {
  if (text === '') return true;
  // Escapes and what is quoted cannot hold a separator; what is left of them does not matter.
  const plain = text.replace(ESCAPE, '_').replace(/"[^"]*"/g, '_');
  if (/["\\]/.test(plain)) return false;
  return plain.split(/[,;+]/).every((part) => {
    const equals = part.indexOf('=');
    const type = part.slice(0, equals).trim();
    const value = part.slice(equals + 1).trim();
    if (equals < 0 || !(KEYWORDS.test(type) || OBJECT_IDENTIFIER.test(type))) return false;
    return value.startsWith('#') ? /^#([0-9a-fA-F]{2})+$/.test(value) : !/[<>]/.test(value);
  });
}

/** An id that stands for an alternative name. */
export function isAlternativeName(id: string): boolean {
  return /^(DNS|URI|email|IP):./.test(id);
}
