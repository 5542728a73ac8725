import { connect as connectSocket, createServer, type Server, type Socket } from 'node:net';
import type { ConnectEvents, Endpoint, ListenEvents, Network } from '@meerkat/core';
import { SocketStream, type Traffic } from './socket-stream.ts';
import type { Turn } from './turn.ts';

/** Streams between servers, on the sockets of this machine. Names are resolved anew for each connection, by the system. */
export class PeerNetwork implements Network {
  readonly #turn: Turn;
  readonly #listensOnAllIps: boolean;
  readonly #streams = new Set<SocketStream>();
  /** Of connections that are not there yet. */
  readonly #connecting = new Set<Socket>();
  readonly #servers = new Set<Server>();

  /** @param listensOnAllIps listens on every address of the machine, whatever the core asks for */
  constructor(turn: Turn, listensOnAllIps: boolean) {
    this.#turn = turn;
    this.#listensOnAllIps = listensOnAllIps;
  }

  listen(at: Endpoint, events: ListenEvents): { close(): void } {
    let isClosed = false;
    const tell = (event: () => void): void => {
      if (!isClosed) this.#turn.run(event);
    };
    const server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: true }, (socket) => {
      if (isClosed || this.#turn.isStopped) socket.destroy();
      else this.#open(socket, (stream) => events.onAccepted(stream));
    });
    this.#servers.add(server);
    // Also an accept that failed for want of files is told as an error, by a server that goes on: were it left as it is,
    // it would hold the port against the next attempt.
    server.on('error', (error: NodeJS.ErrnoException) => {
      this.#servers.delete(server);
      server.close();
      tell(() => events.onListenFailed(error.code ?? error.message));
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

  connect(to: Endpoint, events: ConnectEvents): { cancel(): void } {
    let isOver = false;
    const socket = connectSocket({ host: to.host, port: to.port, allowHalfOpen: true, noDelay: true, keepAlive: true });
    this.#connecting.add(socket);
    const onFailed = (error: NodeJS.ErrnoException): void => {
      this.#connecting.delete(socket);
      if (isOver) return;
      isOver = true;
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
      this.#open(socket, (stream) => events.onConnected(stream));
    });
    return {
      cancel: () => {
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

  #open(socket: Socket, onStream: Parameters<SocketStream['open']>[0]): void {
    const stream = new SocketStream(socket, this.#turn, NOT_COUNTED);
    this.#streams.add(stream);
    socket.once('close', () => this.#streams.delete(stream));
    stream.open(onStream);
  }
}

/** Bytes between servers are not those of clients. */
const NOT_COUNTED: Traffic = { onBytesReceived() {} };
