import { connect as connectSocket, createServer, type Server, type Socket } from 'node:net';
import type { ConnectEvents, Endpoint, ListenEvents, Network } from '@meerkat/core';
import { type ConnectionShare, UNLIMITED_SHARE } from './descriptors.ts';
import { SocketStream, type Traffic } from './socket-stream.ts';
import type { Turn } from './turn.ts';

/** Streams between servers, on the sockets of this machine. Names are resolved anew for each connection, by the system. */
export class PeerNetwork implements Network {
  readonly #turn: Turn;
  readonly #listensOnAllIps: boolean;
  readonly #makeShare: () => ConnectionShare;
  readonly #streams = new Set<SocketStream>();
  /** Of connections that are not there yet. */
  readonly #connecting = new Set<Socket>();
  readonly #servers = new Set<Server>();
  /** In words, by `host:port`, what came of the last attempt to connect, where it failed. */
  readonly #failures = new Map<string, string>();

  /**
   * @param listensOnAllIps listens on every address of the machine, whatever the core asks for
   * @param makeShare how many connections a port may take before they crowd
   */
  constructor(turn: Turn, listensOnAllIps: boolean, makeShare: () => ConnectionShare = () => UNLIMITED_SHARE) {
    this.#turn = turn;
    this.#listensOnAllIps = listensOnAllIps;
    this.#makeShare = makeShare;
  }

  listen(at: Endpoint, events: ListenEvents): { close(): void } {
    let isClosed = false;
    const share = this.#makeShare();
    const tell = (event: () => void): void => {
      if (!isClosed) this.#turn.run(event);
    };
    const server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true }, (socket) => {
      if (isClosed || this.#turn.isStopped) socket.destroy();
      else this.#open(socket, (stream) => events.onAccepted(stream), share);
    });
    this.#servers.add(server);
    server.on('error', (error: NodeJS.ErrnoException) => {
      // An accept that failed, for want of descriptors for instance: the port goes on, and others must not get it.
      if (server.listening && !LISTENS_NO_MORE.has(error.code ?? '')) return;
      this.#servers.delete(server);
      server.close();
      tell(() => events.onListenFailed(describeListenFailure(error)));
    });
    const host = this.#listensOnAllIps ? {} : { host: at.host };
    server.listen({ port: at.port, ...host }, () => tell(() => events.onListening()));
    return {
      close: () => {
        isClosed = true;
        this.#servers.delete(server);
        server.close();
      },
    };
  }

  /** Why the last attempt to connect there has failed, in words; null when it did not. */
  failureAt({ host, port }: Endpoint): string | null {
    return this.#failures.get(`${host}:${port}`) ?? null;
  }

  connect(to: Endpoint, events: ConnectEvents): { cancel(): void } {
    const place = `${to.host}:${to.port}`;
    let isOver = false;
    const socket = connectSocket({ host: to.host, port: to.port, allowHalfOpen: true, noDelay: true, keepAlive: true });
    this.#connecting.add(socket);
    const onFailed = (error: NodeJS.ErrnoException): void => {
      this.#connecting.delete(socket);
      if (isOver) return;
      isOver = true;
      this.#failures.set(place, describeConnectFailure(error, to));
      this.#turn.run(() => events.onConnectFailed(error.code ?? error.message));
    };
    socket.once('error', onFailed);
    socket.once('connect', () => {
      this.#connecting.delete(socket);
      socket.off('error', onFailed);
      if (isOver || this.#turn.isStopped) {
        socket.destroy();
        return;
      }
      isOver = true;
      this.#failures.delete(place);
      this.#open(socket, (stream) => events.onConnected(stream));
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

  /** Breaks everything; nothing is told any more once the turn has stopped. */
  destroyAll(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#connecting) socket.destroy();
    for (const stream of this.#streams) stream.destroy();
  }

  freeze(): void {
    for (const stream of this.#streams) stream.freeze();
  }

  thaw(): void {
    for (const stream of this.#streams) stream.thaw();
  }

  #open(socket: Socket, onStream: Parameters<SocketStream['open']>[0], share = UNLIMITED_SHARE): void {
    const stream = new SocketStream(socket, this.#turn, NOT_COUNTED, share);
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
      return `nobody listens at ${host}:${port}`;
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
