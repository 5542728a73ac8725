import { type AddressInfo, createServer, type Server } from 'node:net';
import type { ByteStream, StreamEvents } from '@meerkat/core';
import { type ConnectionShare, UNLIMITED_SHARE } from './descriptors.ts';
import { SocketStream, type Traffic } from './socket-stream.ts';
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
}

/** A port that accepts connections. */
export interface Listener {
  /** As the system tells it; host is "::" or "0.0.0.0" for every address. */
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
}

/**
 * Listens, and gives each connection to `onStream`, which tells what to do with its events.
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
  const { share = UNLIMITED_SHARE } = options;
  const server = createServer({ allowHalfOpen: true, noDelay: true, keepAlive: options.keepAlive }, (socket) => {
    if (turn.isStopped) {
      socket.destroy();
      return;
    }
    const stream = new SocketStream(socket, turn, options.traffic, share);
    streams.add(stream);
    socket.once('close', () => streams.delete(stream));
    stream.open(onStream);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(
      {
        port: options.port,
        ...(options.host === null ? {} : { host: options.host }),
        ...(options.backlog < 0 ? {} : { backlog: options.backlog }),
      },
      () => {
        server.off('error', reject);
        server.on('error', (error) => onWarning(`cannot accept a connection: ${error.message}`));
        resolve(new SocketListener(server, streams));
      },
    );
  });
}

class SocketListener implements Listener {
  readonly host: string;
  readonly port: number;
  readonly #server: Server;
  readonly #streams: ReadonlySet<SocketStream>;

  constructor(server: Server, streams: ReadonlySet<SocketStream>) {
    const { address, port } = server.address() as AddressInfo;
    this.host = address;
    this.port = port;
    this.#server = server;
    this.#streams = streams;
  }

  close(): void {
    this.#server.close();
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
    for (const stream of this.#streams) stream.destroy();
  }

  freeze(): void {
    for (const stream of this.#streams) stream.freeze();
  }

  thaw(): void {
    for (const stream of this.#streams) stream.thaw();
  }
}
