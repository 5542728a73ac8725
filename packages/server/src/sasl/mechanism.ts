import { objectIdentifier } from '@meerkat/protocol/der';

export const DIGEST_MD5 = 'a password (DIGEST-MD5)';
export const KERBEROS = 'Kerberos (GSSAPI)';

/**
 * Guesses the mechanism of a peer from its first token; null when it is unknown. ZooKeeper's protocol does not name the
 * mechanism: each end assumes that the other one has the same. The token itself is not shown: with PLAIN it holds a
 * password.
 */
export function mechanismOf(token: Uint8Array): string | null {
  const bytes = Buffer.from(token.buffer, token.byteOffset, token.length);
  if (bytes.length === 0) return DIGEST_MD5;
  if (bytes[0] === FRAMED) {
    // Behind the length of the whole, which takes one to five bytes.
    const head = bytes.subarray(0, FRAME_HEADER_BYTES_MAX + KERBEROS_ID.length);
    if (head.includes(KERBEROS_ID)) return KERBEROS;
    if (head.includes(SPNEGO_ID)) return 'SPNEGO';
  }
  const text = bytes.subarray(0, TEXT_BYTES_MAX).toString('latin1');
  if (/^[nyp][,=]/.test(text)) return 'SCRAM';
  if (text.startsWith('NTLMSSP\0')) return 'NTLM';
  // Name to act as, user, password.
  if (/^[^\0]*\0[^\0]+\0[^\0]+$/.test(text)) return 'PLAIN';
  return null;
}

/** The log line continues: `…, and this server takes …`. */
export function describeBeginning(mechanism: string | null): string {
  return mechanism === null ? 'its first token is of no known mechanism' : `it begins as with ${mechanism}`;
}

/** [APPLICATION 0], as tokens of GSS-API are framed (RFC 2743 §3.1). */
const FRAMED = 0x60;
const FRAME_HEADER_BYTES_MAX = 6;
/** Of the other mechanisms' tokens; who has not logged in may send a megabyte. */
const TEXT_BYTES_MAX = 1024;
const KERBEROS_ID = Buffer.from(objectIdentifier('1.2.840.113554.1.2.2'));
const SPNEGO_ID = Buffer.from(objectIdentifier('1.3.6.1.5.5.2'));
