import type { PeerAddress } from '@meerkat/core';
import type { Configuration } from '../config/options.ts';
import { ExitCode, ServerError } from '../exit-codes.ts';
import type { Logger } from '../logger.ts';
import type { PeerTls } from '../node/peer-network.ts';
import { Credentials } from './credentials.ts';
import type { TlsOptions } from './options.ts';
import { readInThread } from './store-reader.ts';
import { StoreError } from './stores.ts';
import { readTlsSettings, type TlsSettings } from './tls-settings.ts';

/** Notified when the certificates for new connections have changed. */
export interface RenewalEvents {
  onClientsRenewed(settings: TlsSettings): void;
  onPeersRenewed(settings: TlsSettings): void;
}

/** What a server shows and trusts: to clients, and to other servers. */
export class ServerCredentials {
  readonly #configuration: Configuration;
  readonly #logger: Logger;
  /** Null where no port for clients speaks TLS. */
  #clients: Credentials | null = null;
  /** Null where servers do not speak TLS with each other. */
  #peers: Credentials | null = null;

  constructor(configuration: Configuration, logger: Logger) {
    this.#configuration = configuration;
    this.#logger = logger;
  }

  /** Reads all stores that the configuration names. @throws ServerError when one cannot be used */
  async open({ onClientsRenewed, onPeersRenewed }: RenewalEvents): Promise<void> {
    const { secureClientPort, clientPortUnification, tls, quorumTls } = this.#configuration.server;
    if (secureClientPort !== null || clientPortUnification) this.#clients = await this.#read(tls, onClientsRenewed);
    if (this.#hasPeerTls) this.#peers = await this.#read(quorumTls, onPeersRenewed);
    await this.#checkHttp();
  }

  /** The thread of the HTTP ports reads these for itself: here they stop the start when they cannot be used. */
  async #checkHttp(): Promise<void> {
    const { admin, metricsPort } = this.#configuration.server;
    for (const options of [admin?.tls?.options, metricsPort?.secure?.options]) {
      if (options !== undefined) await refusingStart(readTlsSettings(options, Date.now()));
    }
  }

  stop(): void {
    this.#clients?.stop();
    this.#peers?.stop();
  }

  /** Null where no port for clients speaks TLS. */
  get ofClients(): TlsSettings | null {
    return this.#clients?.settings ?? null;
  }

  /** Whole days until the certificate for clients expires; null without one. */
  get clientDaysLeft(): number | null {
    return this.#clients?.daysLeft ?? null;
  }

  /** The same for the certificate between servers. */
  get peerDaysLeft(): number | null {
    return this.#peers?.daysLeft ?? null;
  }

  /** @param hosts of the members as they are now; how servers speak TLS with each other, once `open` has resolved; null where they do not. */
  peerTls(hosts: () => readonly string[], onRefused: (remote: PeerAddress, reason: string) => void): PeerTls | null {
    if (!this.#hasPeerTls) return null;
    const { server } = this.#configuration;
    return {
      settings: () => this.#peers!.settings,
      isDialling: server.sslQuorum,
      isUnified: server.quorumPortUnification,
      hosts,
      onRefused: (remote, reason) => onRefused(remote, `between servers: ${reason}`),
    };
  }

  get #hasPeerTls(): boolean {
    const { core, server } = this.#configuration;
    return core.ensemble !== null && (server.sslQuorum || server.quorumPortUnification);
  }

  #read(options: TlsOptions, onRenewed: (settings: TlsSettings) => void): Promise<Credentials> {
    const events = {
      onRenewed,
      onNotice: (message: string) => this.#logger.log('info', message),
      onWarning: (message: string) => this.#logger.log('warn', message),
    };
    return refusingStart(Credentials.open(options, events, readInThread));
  }
}

/** @throws ServerError when a store cannot be used */
async function refusingStart<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof StoreError) throw new ServerError(ExitCode.invocation, error.message, error);
    throw error;
  }
}
