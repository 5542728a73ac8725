/** Kerberos authentication is not possible. The message says what was found, and what to do. */
export class KerberosError extends Error {
  override readonly name = 'KerberosError';
}
