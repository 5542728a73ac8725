import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Bounds the connections of one port. For one more, the address with the most connections loses its least recently used
 * idle connection. If all of them are busy it loses the oldest one; the newcomer is closed if it is from that address.
 *
 * So idle connections of one address do not lock others out, such as health probes, which would restart the server.
 */
export class Connections {
  readonly #max: number;
  readonly #onExceeded: (socket: Socket, reason: string) => void;
  /** Least recently used first. */
  readonly #connections = new Map<Socket, Connection>();

  /** @param onExceeded the connection is about to be closed */
  constructor(max: number, onExceeded: (socket: Socket, reason: string) => void) {
    this.#max = max;
    this.#onExceeded = onExceeded;
  }

  /** Applies the limit to the connections of a server. */
  watch(server: Server): void {
    server.on('connection', (socket) => this.#add(socket));
    server.on('request', (request, response) => this.#onRequest(request, response));
  }

  #add(socket: Socket): void {
    const host = socket.remoteAddress ?? '';
    if (this.#connections.size >= this.#max) {
      const victim = this.#victimFor(host) ?? socket;
      const count = this.#max;
      this.#onExceeded(victim, `it is one of more than ${count} connections, and its address has most of them`);
      this.#connections.delete(victim);
      victim.destroy();
      if (victim === socket) return;
    }
    this.#connections.set(socket, { host, responses: new Set() });
    socket.once('close', () => this.#connections.delete(socket));
  }

  #onRequest({ socket }: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined) return;
    this.#connections.delete(socket);
    this.#connections.set(socket, connection);
    connection.responses.add(response);
    response.once('close', () => connection.responses.delete(response));
  }

  /** Null: the newcomer itself. */
  #victimFor(host: string): Socket | null {
    const crowded = this.#crowdedHost();
    let oldest: Socket | null = null;
    for (const [socket, connection] of this.#connections) {
      if (connection.host !== crowded) continue;
      if (!isBusy(connection)) return socket;
      oldest ??= socket;
    }
    return crowded === host ? null : oldest;
  }

  #crowdedHost(): string {
    const counts = new Map<string, number>();
    let crowded = '';
    for (const { host } of this.#connections.values()) {
      const count = (counts.get(host) ?? 0) + 1;
      counts.set(host, count);
      if (count > (counts.get(crowded) ?? 0)) crowded = host;
    }
    return crowded;
  }
}

interface Connection {
  readonly host: string;
  /** Those that are not sent yet. */
  readonly responses: Set<ServerResponse>;
}

/** Whether something is done for it: what is made and not taken is not. */
function isBusy({ responses }: Connection): boolean {
  for (const response of responses) if (!response.writableEnded) return true;
  return false;
}
