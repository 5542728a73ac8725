import { readFileSync } from 'node:fs';
import { type Client, connect } from '@meerkat/client';

// #region tls
/** Called for each connection: renewed certificates are used from the next one on. */
export function connectSecurely(servers: string, directory: string): Promise<Client> {
  return connect(servers, {
    tls: () => ({
      ca: readFileSync(`${directory}/ca.pem`),
      cert: readFileSync(`${directory}/client.pem`), // if the servers want one (ssl.clientAuth)
      key: readFileSync(`${directory}/client.key`),
    }),
  });
}
// #endregion
