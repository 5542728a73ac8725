import { type Client, type ConnectOptions, connect } from '@meerkat/client';
import type { TcpProxy } from '@meerkat/testing';
import type { ServerKind, ServerProcess } from '../../harness/server-process.ts';

/** Shared by the tests of operations: one server, and unique znode names. */
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

  /** Connects through proxies, with fast reconnects. */
  connectThrough(
    proxies: TcpProxy | readonly TcpProxy[],
    options: Omit<ConnectOptions, 'servers'> = {},
  ): Promise<Client> {
    const servers = [proxies].flat().map(({ connectString }) => connectString);
    return connect({ servers, backOff: { minMs: 1, maxMs: 5 }, ...options });
  }

  /** An unused path below the root. */
  freshPath(): string {
    this.#znodes++;
    return `/znode-${this.#znodes}`;
  }
}

export function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
