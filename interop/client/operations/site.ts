import { type Client, type ConnectOptions, connect } from '@meerkat/client';
import type { TcpProxy } from '@meerkat/testing';
import type { ServerKind, ServerProcess } from '../../harness/server-process.ts';

/** Where the tests of the operations run: one server, and names of znodes that no other test uses. */
export class Site {
  readonly kind: ServerKind;
  readonly #server: () => ServerProcess;
  #znodes = 0;

  constructor(kind: ServerKind, server: () => ServerProcess) {
    this.kind = kind;
    this.#server = server;
  }

  get server(): ServerProcess {
    return this.#server();
  }

  get address(): string {
    return `127.0.0.1:${this.server.port}`;
  }

  connect(options: Omit<ConnectOptions, 'servers'> = {}): Promise<Client> {
    return connect(this.address, options);
  }

  /** Through proxies, and quick to come back when they cut the connection. */
  connectThrough(
    proxies: TcpProxy | readonly TcpProxy[],
    options: Omit<ConnectOptions, 'servers'> = {},
  ): Promise<Client> {
    const servers = [proxies].flat().map(({ connectString }) => connectString);
    return connect({ servers, backOff: { minMs: 1, maxMs: 5 }, ...options });
  }

  /** A path below the root that nothing has been created at. */
  freshPath(): string {
    this.#znodes++;
    return `/znode-${this.#znodes}`;
  }
}

export function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
