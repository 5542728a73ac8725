export const CLOSED_BY_PEER = 'it closed the connection during the TLS handshake';

/** What was found wrong with the certificate of a peer, from OpenSSL's code for it. */
export function describeVerifyError(code: Error | string | undefined | null): string {
  const text = code instanceof Error ? ((code as NodeJS.ErrnoException).code ?? code.message) : String(code);
  return `its certificate is refused: ${VERIFY_ERRORS[text] ?? text}`;
}

const VERIFY_ERRORS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'it has expired',
  CERT_NOT_YET_VALID: 'it is not valid yet (is the clock right?)',
  CERT_REVOKED: 'it is revoked',
  CRL_HAS_EXPIRED: 'the list of revoked certificates has expired: put a new one in its place',
  UNABLE_TO_GET_CRL: 'there is no list of revoked certificates of its authority',
  UNABLE_TO_GET_ISSUER_CERT: 'no authority of the trust store has issued it',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'no authority of the trust store has issued it',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'no authority of the trust store has issued it',
  // OpenSSL, unlike Java, looks for no authority of the same name where the certificate does not identify the key of its own.
  DEPTH_ZERO_SELF_SIGNED_CERT:
    'no authority of the trust store has issued it: its subject is its issuer, too (an authority has to have a name of its own)',
  SELF_SIGNED_CERT_IN_CHAIN: 'no authority of the trust store has issued it',
  INVALID_PURPOSE: 'its extendedKeyUsage does not allow TLS clients',
};

/** Why a handshake was not finished, without the texts of OpenSSL where there are plainer ones. */
export function describeHandshakeError(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ECONNRESET':
      return CLOSED_BY_PEER;
    case 'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE':
      return 'it has shown no certificate, which clientAuth=need asks for';
    case 'ERR_SSL_NO_SHARED_CIPHER':
      return 'it shares no cipher suite with this server';
    case 'ERR_SSL_UNSUPPORTED_PROTOCOL':
      return 'it offers only versions of TLS that this server does not speak';
    // Alerts: what the peer has found.
    case 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA':
      return 'it refuses the certificate of this server: no authority of its own trust store has issued it';
    case 'ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN':
      // Java says so of an authority that it does not trust.
      return 'it refuses the certificate of this server, and does not say why: see its log';
    case 'ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED':
      return 'it refuses the certificate of this server: it has expired, or the clock of one of both is wrong';
    case 'ERR_SSL_HTTP_REQUEST':
      return 'it speaks HTTP';
    default:
      // OpenSSL's text: "C0…:error:0A000418:SSL routines:ssl3_read_bytes:tlsv1 alert unknown ca:…"
      return `the TLS handshake failed: ${/SSL routines:[^:]*:([^:]+)/.exec(error.message)?.[1] ?? error.code ?? error.message}`;
  }
}
