import { type Client, connect, digestMd5, kerberos } from '@meerkat/client';

// #region sasl
/** The password is not sent, and the server proves that it knows it, too. Only TLS hides what follows. */
export function connectAsBob(servers: string): Promise<Client> {
  return connect(servers, { sasl: digestMd5({ username: 'bob', password: 'builder' }) });
}
// #endregion

// #region kerberos
/** By the ticket of `kinit`, or with the keytab of the application. The server proves itself, too. */
export function connectByTicket(servers: string, keytab?: string): Promise<Client> {
  return connect(servers, { sasl: kerberos({ keytab }) });
}
// #endregion
