import { X509Certificate } from 'node:crypto';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { ByteStream, PeerAddress, StreamEvents } from '@meerkat/core';
import { DerError } from '@meerkat/protocol/der';
import { Handshakes } from '../tls/handshakes.ts';
import { readPeerCertificate } from '../tls/peer-certificate.ts';
import type { PeerCheckResult } from '../tls/peer-names.ts';
import type { TlsSettings } from '../tls/tls-settings.ts';
import { type ConnectionShare, UNLIMITED_SHARE } from './descriptors.ts';
import { addressOf, type Secured, SocketStream, type Traffic } from './socket-stream.ts';
import type { Turn } from './turn.ts';

export interface ListenOptions {
  /** Name or address; null = every address of the machine. */
  readonly host: string | null;
  /** 0 = any free port. */
  readonly port: number;
  /** −1 = the runtime's default. */
  readonly backlog: number;
  readonly keepAlive: boolean;
  readonly traffic: Traffic;
  /** How many connections there may be before they crowd; left out, any number. */
  readonly share?: ConnectionShare;
  /** Left out: no TLS. */
  readonly tls?: TlsListenOptions;
  /** Others of this process listen on the same port, with the same option; the kernel shares connections out. */
  readonly isPortShared?: boolean;
}

export interface TlsListenOptions {
  readonly settings: TlsSettings;
  /** Peers may also speak without TLS. */
  readonly isUnified: boolean;
  /** Maximum of handshakes under way per address; 0 = only the total limit. */
  readonly perHostMax: number;
  /** Checks a certificate beyond its issuer. Omitted: accepted. */
  readonly checkPeer?: ((certificate: X509Certificate, remote: PeerAddress) => Promise<PeerCheckResult>) | undefined;
  readonly events: TlsListenEvents;
}

/** Called for connections that fail before they are secure. */
export interface TlsListenEvents {
  /** `isAuthentication`: because of its certificate. */
  onHandshakeFailed(remote: PeerAddress, reason: string, isAuthentication: boolean): void;
  onHandshakesExceeded(remote: PeerAddress, reason: string): void;
}

/** A port that accepts connections. */
export interface Listener {
  /** As reported by the system; host is "::" or "0.0.0.0" for every address. */
  readonly host: string;
  readonly port: number;
  /** Accepts nothing more; connections that are there stay. */
  close(): void;
  /** Waits until all connections are closed, at most that long, and breaks those that are left. */
  drain(timeoutMs: number): Promise<void>;
  /** Breaks all connections. */
  destroyAll(): void;
  /** Reads nothing more: what clients send, and that they close, waits in the kernel. Goes with a frozen turn. */
  freeze(): void;
  thaw(): void;
  /** Connections from now on are shown these certificates. Not without TLS. */
  renew(settings: TlsSettings): void;
  /** Connections whose TLS handshake is not done. */
  readonly handshakeCount: number;
}

/**
 * Listens, and passes each connection to `onStream`, which returns the handlers of its events.
 *
 * @param onWarning an accept that failed: too many open files, for instance
 * @returns once it listens; rejects with Node's error when it cannot
 */
export function listen(
  options: ListenOptions,
  turn: Turn,
  onStream: (stream: ByteStream) => StreamEvents,
  onWarning: (message: string) => void,
): Promise<Listener> {
  const streams = new Set<SocketStream>();
  const { share = UNLIMITED_SHARE, tls } = options;
  const open = (socket: Socket, secured: Secured | null): void => {
    if (turn.isStopped) {
      socket.destroy();
      return;
    }
    const stream = new SocketStream(socket, turn, options.traffic, share, secured, turn.writePace);
    streams.add(stream);
    socket.once('close', () => streams.delete(stream));
    stream.open(onStream);
  };
  const handshakes = tls === undefined ? null : makeHandshakes(tls, open);
  const server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: options.keepAlive }, (socket) => {
    if (handshakes === null || turn.isStopped) open(socket, null);
    else handshakes.accept(socket, share);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(
      {
        port: options.port,
        ...(options.host === null ? {} : { host: options.host }),
        ...(options.backlog < 0 ? {} : { backlog: options.backlog }),
        // Known to Node.js from 22.12 on, and not to the types of 20.
        ...(options.isPortShared === true ? { reusePort: true } : {}),
      },
      () => {
        server.off('error', reject);
        server.on('error', (error) => onWarning(`cannot accept a connection: ${error.message}`));
        resolve(new SocketListener(server, streams, handshakes));
      },
    );
  });
}

/** @param onOpen called for each accepted connection, with the result of its handshake; null for plain ones */
export function makeHandshakes(
  { settings, isUnified, perHostMax, events, checkPeer }: TlsListenOptions,
  onOpen: (socket: Socket, secured: Secured | null) => void,
): Handshakes {
  const refuse = (socket: Socket, remote: PeerAddress, reason: string): void => {
    events.onHandshakeFailed(remote, reason, true);
    socket.destroy();
  };
  const open = (
    socket: Socket,
    remote: PeerAddress,
    certificate: Uint8Array | null,
    certifiedHosts: readonly string[] | null = null,
  ): void => {
    let secured: Secured;
    try {
      secured = {
        certificate: certificate === null ? null : readPeerCertificate({ raw: certificate }),
        certifiedHosts,
      };
    } catch (error) {
      if (!(error instanceof DerError)) throw error;
      refuse(socket, remote, `its certificate cannot be decoded: ${error.message}`);
      return;
    }
    onOpen(socket, secured);
  };
  return new Handshakes(settings, perHostMax, {
    ...(isUnified ? { onPlain: (socket: Socket) => onOpen(socket, null) } : {}),
    onSecure(socket, certificate) {
      const remote = addressOf(socket);
      if (certificate === null || checkPeer === undefined) {
        open(socket, remote, certificate);
        return;
      }
      socket.on('error', IGNORE);
      void checkPeer(new X509Certificate(certificate), remote).then((result) => {
        if ('refusal' in result) refuse(socket, remote, result.refusal);
        else if (!socket.destroyed) open(socket, remote, certificate, result.hosts);
      });
    },
    onFailed: (socket, reason, isAuthentication) =>
      events.onHandshakeFailed(addressOf(socket), reason, isAuthentication),
    onExceeded: (socket, reason) => events.onHandshakesExceeded(addressOf(socket), reason),
  });
}

const IGNORE = (): void => {};

class SocketListener implements Listener {
  readonly host: string;
  readonly port: number;
  readonly #server: Server;
  readonly #streams: ReadonlySet<SocketStream>;
  readonly #handshakes: Handshakes | null;

  constructor(server: Server, streams: ReadonlySet<SocketStream>, handshakes: Handshakes | null) {
    const { address, port } = server.address() as AddressInfo;
    this.host = address;
    this.port = port;
    this.#server = server;
    this.#streams = streams;
    this.#handshakes = handshakes;
  }

  get handshakeCount(): number {
    return this.#handshakes?.count ?? 0;
  }

  renew(settings: TlsSettings): void {
    this.#handshakes?.renew(settings);
  }

  close(): void {
    this.#server.close();
    this.#handshakes?.destroyAll();
  }

  async drain(timeoutMs: number): Promise<void> {
    const closed = [...this.#streams].map((stream) => stream.closed);
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise((resolve) => {
      timer = setTimeout(resolve, timeoutMs);
    });
    await Promise.race([Promise.all(closed), timeout]);
    clearTimeout(timer);
    this.destroyAll();
  }

  destroyAll(): void {
    this.#handshakes?.destroyAll();
    for (const stream of this.#streams) stream.destroy();
  }

  freeze(): void {
    this.#handshakes?.freeze();
    for (const stream of this.#streams) stream.freeze();
  }

  thaw(): void {
    this.#handshakes?.thaw();
    for (const stream of this.#streams) stream.thaw();
  }
}
