import { type Client, connect, digestMd5, kerberos } from '@meerkat/client';

/** The password is not sent. Only TLS hides what follows. */
export function connectAsBob(servers: string): Promise<Client> {
  return connect(servers, { sasl: digestMd5({ username: 'bob', password: 'builder' }) });
}

/** With the ticket of `kinit`, or the keytab of the application. The server authenticates itself too. */
export function connectByTicket(servers: string, keytab?: string): Promise<Client> {
  return connect(servers, { sasl: kerberos({ keytab }) });
}
