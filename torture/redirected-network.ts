import type { ConnectEvents, Endpoint, ListenEvents, Network } from '@meerkat/core';

/** Connects to other servers through proxies that do not appear in the member list. */
export class RedirectedNetwork implements Network {
  readonly #sockets: Network;
  /** By a server's port: the port of its proxy on 127.0.0.1. */
  readonly #ports: ReadonlyMap<number, number>;

  constructor(sockets: Network, ports: ReadonlyMap<number, number>) {
    this.#sockets = sockets;
    this.#ports = ports;
  }

  listen(at: Endpoint, events: ListenEvents): { close(): void } {
    return this.#sockets.listen(at, events);
  }

  connect(to: Endpoint, events: ConnectEvents): { cancel(): void } {
    const port = this.#ports.get(to.port);
    return this.#sockets.connect(port === undefined ? to : { host: '127.0.0.1', port }, events);
  }
}
