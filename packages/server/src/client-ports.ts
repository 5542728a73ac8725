import type { ByteStream, StreamEvents } from '@meerkat/core';
import type { Configuration } from './config/options.ts';
import { describeListenError } from './describe-failure.ts';
import { ExitCode, ServerError } from './exit-codes.ts';
import type { Logger } from './logger.ts';
import type { ClientAddress } from './membership/client-port.ts';
import type { Metrics } from './metrics/metrics.ts';
import type { Descriptors } from './node/descriptors.ts';
import { type Listener, type ListenOptions, listen, type TlsListenOptions } from './node/network.ts';
import { ClientThreads, threadsMax } from './node/threads/client-threads.ts';
import type { Turn } from './node/turn.ts';
import { checkClient } from './tls/peer-names.ts';
import type { TlsSettings } from './tls/tls-settings.ts';

/** What the ports of clients need of their server. */
export interface ClientPortsParts {
  readonly configuration: Configuration;
  readonly turn: Turn;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly descriptors: Descriptors;
  /** Null where no port for clients speaks TLS. Asked when the ports are opened. */
  readonly tlsSettings: () => TlsSettings | null;
  readonly tlsEvents: TlsListenOptions['events'];
  readonly onStream: (stream: ByteStream) => StreamEvents;
}

interface Place {
  readonly host: string;
  readonly port: number;
}

/** The ports on which clients connect: `clientPort`, `secureClientPort`, or both. */
export class ClientPorts {
  readonly #parts: ClientPortsParts;
  /** Null when no port is configured for it. */
  #listener: Listener | null = null;
  #secureListener: Listener | null = null;
  /** Closed listeners, whose clients may still be connected. */
  readonly #formerListeners: Listener[] = [];
  #isClosed = false;
  /** Null: the sockets are in the thread of the core. */
  #threads: ClientThreads | null = null;

  constructor(parts: ClientPortsParts) {
    this.#parts = parts;
  }

  /** Of a server that has a port for TLS alone, that one. */
  get address(): Place {
    const { clientHost, clientPort } = this.#parts.configuration.server;
    if (clientPort === null && this.secureAddress !== null) return this.secureAddress;
    return { host: this.#listener?.host ?? clientHost ?? '::', port: this.#listener?.port ?? clientPort ?? 0 };
  }

  get secureAddress(): Place | null {
    const { secureClientHost, secureClientPort } = this.#parts.configuration.server;
    if (secureClientPort === null) return null;
    const { host, port } = this.#secureListener ?? { host: secureClientHost ?? '::', port: secureClientPort };
    return { host, port };
  }

  /** Connections whose TLS handshake is not done. */
  get handshakeCount(): number {
    return this.#listeners.reduce((sum, listener) => sum + listener.handshakeCount, 0);
  }

  /** @throws ServerError when a port cannot be opened; others may be open then */
  async listen(): Promise<void> {
    const { clientPort, clientHost, secureClientPort, secureClientHost } = this.#parts.configuration.server;
    const share = this.#parts.descriptors.shareOfClients();
    this.#startThreads();
    if (clientPort !== null) {
      this.#listener = await this.#listenAt('clientPort', clientHost, clientPort, { share, ...this.#unifiedTls() });
    }
    if (secureClientPort !== null) {
      const where = [secureClientHost, secureClientPort] as const;
      this.#secureListener = await this.#listenAt('secureClientPort', ...where, { share, ...this.#tls(false) });
    }
  }

  /** The membership names another client port: clients that are connected stay, as at Apache's server. */
  move({ host, port }: ClientAddress): void {
    if (this.#isClosed) return;
    const { logger, descriptors } = this.#parts;
    const onListening = (listener: Listener): void => {
      if (this.#isClosed) {
        listener.close();
        return;
      }
      logger.log('info', `the membership moves the client port: clients connect at ${host ?? '*'}:${port} now`);
      this.#listener?.close();
      if (this.#listener !== null) this.#formerListeners.push(this.#listener);
      this.#listener = listener;
    };
    const options = { share: descriptors.shareOfClients(), ...this.#unifiedTls() };
    this.#listenAt('clientPort', host, port, options).then(onListening, (error: Error) => {
      logger.log('error', `${error.message}. The membership says that clients connect there`);
    });
  }

  /** Connections from now on are shown these certificates. */
  renew(settings: TlsSettings): void {
    for (const listener of this.#listeners) listener.renew(settings);
  }

  /** Accepts nothing more; connections that are there stay. */
  close(): void {
    this.#isClosed = true;
    for (const listener of this.#listeners) listener.close();
  }

  /** Waits until all connections are closed, at most that long, and breaks those that are left. */
  async drain(timeoutMs: number): Promise<void> {
    await Promise.all(this.#listeners.map((listener) => listener.drain(timeoutMs)));
  }

  /** Breaks all connections. */
  destroyAll(): void {
    for (const listener of this.#listeners) listener.destroyAll();
  }

  /** Ends the threads that have the sockets, and with them what connections are left. */
  async stop(): Promise<void> {
    await this.#threads?.stop();
  }

  freeze(): void {
    for (const listener of this.#listeners) listener.freeze();
  }

  thaw(): void {
    for (const listener of this.#listeners) listener.thaw();
  }

  #startThreads(): void {
    const { configuration, turn, logger, metrics, descriptors } = this.#parts;
    const { clientThreads } = configuration.server;
    if (clientThreads === 0) return;
    const max = threadsMax();
    if (clientThreads > max) {
      const text = `clientThreads=${clientThreads}: with Node.js ${process.versions.node} ${max} is used, because its sockets cannot share a port; 22.12, 23.1 and later can`;
      logger.log('warn', text);
    }
    this.#threads = new ClientThreads(Math.min(clientThreads, max), {
      turn,
      logger,
      clientsMax: descriptors.clientsMax,
      onClientsCrowd: () => descriptors.onClientsCrowd(),
      onBytesReceived: (bytes) => metrics.onBytesReceived(bytes),
    });
  }

  get #listeners(): readonly Listener[] {
    const current = [this.#listener, this.#secureListener].filter((listener) => listener !== null);
    return [...current, ...this.#formerListeners];
  }

  #tls(isUnified: boolean): { readonly tls?: TlsListenOptions } {
    const settings = this.#parts.tlsSettings();
    if (settings === null) return {};
    const { configuration, tlsEvents: events } = this.#parts;
    const perHostMax = configuration.core.connectionsPerHostMax;
    return { tls: { settings, isUnified, perHostMax, events, checkPeer: this.#checkClient } };
  }

  #unifiedTls(): { readonly tls?: TlsListenOptions } {
    return this.#parts.configuration.server.clientPortUnification ? this.#tls(true) : {};
  }

  /** Undefined when the addresses of clients are not compared with their certificates. */
  get #checkClient(): TlsListenOptions['checkPeer'] {
    const { tls } = this.#parts.configuration.server;
    return tls.verifiesClientHostNames ? (certificate, { host }) => checkClient(certificate, host, tls) : undefined;
  }

  async #listenAt(
    key: string,
    host: string | null,
    port: number,
    options: Pick<ListenOptions, 'share' | 'tls'>,
  ): Promise<Listener> {
    const { configuration, turn, metrics, logger, onStream } = this.#parts;
    const { listenBacklog: backlog, tcpKeepAlive: keepAlive } = configuration.server;
    const where = { host, port, backlog, keepAlive };
    try {
      if (this.#threads !== null) {
        const { tls } = options;
        const events = { onStream, tls: tls?.events ?? null };
        return await this.#threads.listen({ ...where, ...(tls === undefined ? {} : { tls }) }, events);
      }
      return await listen({ ...options, ...where, traffic: metrics }, turn, onStream, (message) =>
        logger.log('warn', message),
      );
    } catch (error) {
      throw new ServerError(ExitCode.unexpected, describeListenError(error, key, host, port), error);
    }
  }
}
