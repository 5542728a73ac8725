/**
 * Whether a peer speaks TLS on a plain port: its first two bytes are those of a handshake of version 3. None that speaks
 * what is spoken here begins so.
 *
 * @param first the first four bytes as an int
 */
export function isTlsHello(first: number): boolean {
  return first >>> 16 === 0x1603;
}

/** What is said of such a peer on a port between servers. */
export const SPEAKS_TLS =
  'it speaks TLS, and this port does not: both servers need one sslQuorum, or portUnification=true';
