import { type Client, connect, digestMd5 } from '@meerkat/client';

// #region sasl
/** The password is not sent, and the server proves that it knows it, too. Only TLS hides what follows. */
export function connectAsBob(servers: string): Promise<Client> {
  return connect(servers, { sasl: digestMd5({ username: 'bob', password: 'builder' }) });
}
// #endregion
