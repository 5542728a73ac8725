/** Parts of Kerberos that Meerkat's servers use, too. Applications use `kerberos` of `@meerkat/client`. */
export {
  type ApRequest,
  type Authenticator,
  readApRequest,
  readAuthenticator,
  readTicket,
  type Ticket,
  writeApReply,
  writeApReplyPart,
} from './ap-messages.ts';
export { MicroClock } from './authenticator.ts';
export { ENCRYPTION_TYPES, type EncryptionType } from './encryption.ts';
export type { EncryptedData, EncryptionKey } from './fields.ts';
export { frame, KeyUsage, TokenId, unframe, unwrap, type WrapKey, type Wrapper, wrap } from './gss-token.ts';
export { GssapiInitiator } from './gssapi-initiator.ts';
export { KerberosError } from './kerberos-error.ts';
export { Keytab, type KeytabKey, parseKeytab } from './keytab.ts';
export { type Krb5Config, readKrb5Config } from './krb5-config.ts';
export type { ServiceTicket } from './service-ticket.ts';
export { TicketSource, type TicketSourceOptions } from './ticket-source.ts';
