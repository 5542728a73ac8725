/** Kerberos does not give what is needed. The message says what was found, and what to do. */
export class KerberosError extends Error {
  override readonly name = 'KerberosError';
}
