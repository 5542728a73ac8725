/**
 * Whether a peer speaks TLS on a plaintext port: its first two bytes are those of a TLS 1.x handshake. No protocol that
 * is expected here begins like this.
 *
 * @param first the first four bytes as an int
 */
export function isTlsHello(first: number): boolean {
  return first >>> 16 === 0x1603;
}

/** The reason logged for such a peer on a port between servers. */
export const SPEAKS_TLS =
  'it speaks TLS, and this port does not: both servers need one sslQuorum, or portUnification=true';
