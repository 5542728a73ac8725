import { connect as connectSocket, createServer, type Server, type Socket } from 'node:net';
import type { ConnectEvents, Endpoint, ListenEvents, Network, PeerAddress } from '@meerkat/core';
import type { Handshakes } from '../tls/handshakes.ts';
import { checkMember } from '../tls/peer-names.ts';
import type { TlsSettings } from '../tls/tls-settings.ts';
import { type ConnectionShare, UNLIMITED_SHARE } from './descriptors.ts';
import { DialledReads } from './dialled-reads.ts';
import { makeHandshakes } from './network.ts';
import { secureDialled } from './secure-dial.ts';
import { type Secured, SocketStream, type Traffic } from './socket-stream.ts';
import type { Turn } from './turn.ts';

/** How servers speak TLS with each other. */
export interface PeerTls {
  /** What new connections are shown, and checked against. */
  readonly settings: () => TlsSettings;
  /** Others are connected to with TLS. */
  readonly isDialling: boolean;
  /** Others may connect without. */
  readonly isUnified: boolean;
  /** Hosts of the list of members as it is now. */
  readonly hosts: () => readonly string[];
  onRefused(remote: PeerAddress, reason: string): void;
}

/** Streams between servers, over sockets. Names are resolved by the system for each connection. */
export class PeerNetwork implements Network {
  readonly #turn: Turn;
  readonly #listensOnAllIps: boolean;
  readonly #makeShare: () => ConnectionShare;
  readonly #tls: PeerTls | null;
  readonly #prepare: ((host: string) => Promise<void>) | null;
  /** Of the ports that take TLS. */
  readonly #handshakes = new Set<Handshakes>();
  readonly #streams = new Set<SocketStream>();
  /** Of connections that are not there yet. */
  readonly #connecting = new Set<Socket>();
  readonly #servers = new Set<Server>();
  /** Why the last attempt to connect failed, by `host:port`. */
  readonly #failures = new Map<string, string>();

  /**
   * @param listensOnAllIps listens on every address of the machine instead of the given one
   * @param makeShare the maximum of connections of a port
   * @param tls null: no TLS
   * @param prepare called before each attempt to connect to a host, which fails if this fails
   */
  constructor(
    turn: Turn,
    listensOnAllIps: boolean,
    makeShare: () => ConnectionShare = () => UNLIMITED_SHARE,
    tls: PeerTls | null = null,
    prepare: ((host: string) => Promise<void>) | null = null,
  ) {
    this.#turn = turn;
    this.#listensOnAllIps = listensOnAllIps;
    this.#makeShare = makeShare;
    this.#tls = tls;
    this.#prepare = prepare;
  }

  listen(at: Endpoint, events: ListenEvents): { close(): void } {
    let isClosed = false;
    const share = this.#makeShare();
    const deliver = (event: () => void): void => {
      if (!isClosed) this.#turn.run(event);
    };
    const open = (socket: Socket, secured: Secured | null): void => {
      if (isClosed || this.#turn.isStopped) socket.destroy();
      else this.#open(socket, (stream) => events.onAccepted(stream), share, secured);
    };
    const handshakes = this.#tls === null ? null : this.#makeHandshakes(this.#tls, open);
    const server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true }, (socket) => {
      if (handshakes === null || isClosed || this.#turn.isStopped) open(socket, null);
      else handshakes.accept(socket, share);
    });
    this.#servers.add(server);
    server.on('error', (error: NodeJS.ErrnoException) => {
      // An accept failed, for lack of descriptors for instance: the server still listens, and must keep the port.
      if (server.listening && !LISTENS_NO_MORE.has(error.code ?? '')) return;
      this.#servers.delete(server);
      server.close();
      deliver(() => events.onListenFailed(describeListenFailure(error)));
    });
    const host = this.#listensOnAllIps ? {} : { host: at.host };
    server.listen({ port: at.port, ...host }, () => deliver(() => events.onListening()));
    return {
      close: () => {
        isClosed = true;
        this.#servers.delete(server);
        server.close();
        if (handshakes !== null) {
          handshakes.destroyAll();
          this.#handshakes.delete(handshakes);
        }
      },
    };
  }

  /** Connections from now on are shown these certificates. */
  renew(settings: TlsSettings): void {
    for (const handshakes of this.#handshakes) handshakes.renew(settings);
  }

  #makeHandshakes(tls: PeerTls, onOpen: (socket: Socket, secured: Secured | null) => void): Handshakes {
    const settings = tls.settings();
    const onRefused = (remote: PeerAddress, reason: string): void => tls.onRefused(remote, reason);
    const handshakes = makeHandshakes(
      {
        settings,
        isUnified: tls.isUnified,
        perHostMax: 0,
        checkPeer: (certificate, { host }) => checkMember(certificate, host, tls.hosts(), settings.options),
        events: { onHandshakeFailed: onRefused, onHandshakesExceeded: onRefused },
      },
      onOpen,
    );
    this.#handshakes.add(handshakes);
    return handshakes;
  }

  /** Why the last attempt to connect there has failed, in words; null when it did not. */
  failureAt({ host, port }: Endpoint): string | null {
    return this.#failures.get(`${host}:${port}`) ?? null;
  }

  connect(to: Endpoint, events: ConnectEvents): { cancel(): void } {
    if (this.#prepare === null) return this.#dial(to, events);
    let dial: { cancel(): void } | null = null;
    let isOver = false;
    this.#prepare(to.host).then(
      () => {
        if (!isOver && !this.#turn.isStopped) dial = this.#dial(to, events);
      },
      ({ message }: Error) => {
        if (isOver) return;
        isOver = true;
        this.#failures.set(`${to.host}:${to.port}`, message);
        this.#turn.run(() => events.onConnectFailed(message));
      },
    );
    return {
      cancel: () => {
        isOver = true;
        dial?.cancel();
      },
    };
  }

  #dial(to: Endpoint, events: ConnectEvents): { cancel(): void } {
    const place = `${to.host}:${to.port}`;
    let isOver = false;
    // TLS reads the socket itself.
    const reads = this.#tls?.isDialling === true ? null : new DialledReads();
    const socket = connectSocket({
      host: to.host,
      port: to.port,
      allowHalfOpen: true,
      noDelay: true,
      keepAlive: true,
      ...(reads === null ? {} : { onread: reads.options }),
    });
    this.#connecting.add(socket);
    const onFailed = (code: string, failure: string): void => {
      this.#connecting.delete(socket);
      if (isOver) return;
      isOver = true;
      this.#failures.set(place, failure);
      this.#turn.run(() => events.onConnectFailed(code));
    };
    const onError = (error: NodeJS.ErrnoException): void =>
      onFailed(error.code ?? error.message, describeConnectFailure(error, to));
    const onOpen = (opened: Socket, secured: Secured | null): void => {
      this.#connecting.delete(socket);
      if (isOver || this.#turn.isStopped) {
        opened.destroy();
        return;
      }
      isOver = true;
      this.#failures.delete(place);
      this.#open(opened, (stream) => events.onConnected(stream), UNLIMITED_SHARE, secured, reads);
    };
    socket.once('error', onError);
    socket.once('connect', () => {
      socket.off('error', onError);
      if (this.#tls?.isDialling !== true) onOpen(socket, null);
      else {
        const refuse = (reason: string): void => onFailed(reason, `TLS with ${place} failed: ${reason}`);
        secureDialled(socket, to.host, this.#tls.settings(), onOpen, refuse);
      }
    });
    return {
      cancel: () => {
        if (!isOver) this.#failures.set(place, `nothing answers at ${place}`);
        isOver = true;
        this.#connecting.delete(socket);
        socket.destroy();
      },
    };
  }

  /** Destroys everything; no events are delivered once the turn has stopped. */
  destroyAll(): void {
    for (const server of this.#servers) server.close();
    for (const handshakes of this.#handshakes) handshakes.destroyAll();
    for (const socket of this.#connecting) socket.destroy();
    for (const stream of this.#streams) stream.destroy();
  }

  freeze(): void {
    for (const handshakes of this.#handshakes) handshakes.freeze();
    for (const stream of this.#streams) stream.freeze();
  }

  thaw(): void {
    for (const handshakes of this.#handshakes) handshakes.thaw();
    for (const stream of this.#streams) stream.thaw();
  }

  #open(
    socket: Socket,
    onStream: Parameters<SocketStream['open']>[0],
    share: ConnectionShare,
    secured: Secured | null,
    reads: DialledReads | null = null,
  ): void {
    const stream = new SocketStream(socket, this.#turn, NOT_COUNTED, share, secured, null, reads);
    this.#streams.add(stream);
    socket.once('close', () => this.#streams.delete(stream));
    stream.open(onStream);
  }
}

/** What an accept says at a socket that listens no more: nothing but another socket helps. */
const LISTENS_NO_MORE: ReadonlySet<string> = new Set(['EBADF', 'EINVAL', 'ENOTSOCK', 'EOPNOTSUPP']);

/** Bytes between servers are not those of clients. */
const NOT_COUNTED: Traffic = { onBytesReceived() {} };

/** The code of the system, and what it may mean to a server that listens for the others of its list. */
function describeListenFailure({ code, message }: NodeJS.ErrnoException): string {
  switch (code) {
    case 'EADDRINUSE':
      return `${code}, as another program listens there, or another server with the same myid`;
    case 'EADDRNOTAVAIL':
      return `${code}, as this machine has no such address: is it the one that the list names for this myid? (quorumListenOnAllIPs=true listens everywhere)`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${code}, as this machine does not know the name`;
    case 'EINVAL':
      return `${code}, as the socket listens no more`;
    default:
      return code ?? message;
  }
}

function describeConnectFailure({ code, message }: NodeJS.ErrnoException, { host, port }: Endpoint): string {
  switch (code) {
    case 'ECONNREFUSED':
      return `nothing listens at ${host}:${port}`;
    case 'ENOTFOUND':
      return `the name ${host} is not known`;
    case 'EAI_AGAIN':
      return `the name ${host} cannot be looked up`;
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `there is no way to ${host}`;
    case 'ETIMEDOUT':
      return `nothing answers at ${host}:${port}`;
    default:
      return `${host}:${port}: ${code ?? message}`;
  }
}
