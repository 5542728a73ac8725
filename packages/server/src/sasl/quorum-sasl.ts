import type { PeerAuthentication } from '@meerkat/core';
import { type Credentials, DigestMd5Client } from './digest-md5-client.ts';
import { DigestMd5Server } from './digest-md5-server.ts';
import type { Passwords } from './passwords.ts';

/** What configuration says about SASL between servers. */
export interface QuorumSaslOptions {
  /** As whom this server logs in where it dials (`quorum.auth.learnerRequireSasl`); null: it does not. */
  readonly credentials: Credentials | null;
  /** Whom it knows where it is dialled. */
  readonly users: Passwords;
  /** Servers that do not log in, or fail to, are let in all the same unless this is so (`quorum.auth.serverRequireSasl`). */
  readonly isRequired: boolean;
}

const SERVICE = 'zookeeper-quorum';
const SERVER_NAME = 'zk-quorum-sasl-md5';

export function makePeerAuthentication({ credentials, users, isRequired }: QuorumSaslOptions): PeerAuthentication {
  const options = { service: SERVICE, serverName: SERVER_NAME, users, authorize: () => [] };
  return {
    isRequired,
    startInitiator: () => (credentials === null ? null : new DigestMd5Client(credentials, `${SERVICE}/${SERVER_NAME}`)),
    startAcceptor: () => new DigestMd5Server(options),
  };
}
