import { lookup } from 'node:dns/promises';
import { connect as connectTcp, isIP, type OnReadOpts, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { Target } from '../machine/ports.ts';
import { SocketStream } from './socket-stream.ts';
import type { Transport, TransportEvents, TransportStream } from './transport.ts';

/**
 * TLS options: those of Node's `tls.connect`, without the address.
 *
 * The server's certificate is checked against the host of the connect string, whatever its address; `servername`
 * overrides that.
 */
export type TlsConnectionOptions = Omit<ConnectionOptions, 'host' | 'port' | 'path' | 'socket' | 'lookup' | 'timeout'>;

/** A function is called again for each connection, so that certificates may change while the client lives. */
export type TlsOptions = TlsConnectionOptions | (() => TlsConnectionOptions);

export interface NodeTransportOptions {
  /** Default: plain TCP. */
  readonly tls?: TlsOptions | undefined;
}

/**
 * Node.js sockets, optionally with TLS.
 *
 * @example
 * const transport = makeNodeTransport({ tls: () => ({ ca: readFileSync('/etc/zookeeper/ca.pem') }) });
 */
export function makeNodeTransport(options: NodeTransportOptions = {}): Transport {
  return new NodeTransport(options.tls ?? null);
}

class NodeTransport implements Transport {
  readonly #tls: TlsOptions | null;

  constructor(tls: TlsOptions | null) {
    this.#tls = tls;
  }

  async resolve(host: string): Promise<readonly string[]> {
    if (isIP(host) !== 0) return [host];
    const found = await lookup(host, { all: true });
    // The system lists an address once per socket type.
    return [...new Set(found.map(({ address }) => address))];
  }

  connect(target: Target, events: TransportEvents): TransportStream {
    return new SocketStream((onread) => this.#open(target, onread), this.#tls !== null, events);
  }

  probe(target: Target, word: string, timeoutMs: number): Promise<string> {
    return new Promise((resolve, reject) => {
      let answer = '';
      const stream = this.connect(target, {
        onOpen: () => void stream.write(new TextEncoder().encode(word)),
        onBytes: (chunk) => {
          // Only ASCII is expected; one byte per character, so that no character is split.
          for (const byte of chunk) answer += String.fromCharCode(byte);
        },
        onClosed: (failure, detail) => {
          clearTimeout(timer);
          if (failure === null) resolve(answer);
          else reject(new Error(`${word} was not answered: ${detail}`));
        },
      });
      const timer = setTimeout(() => {
        stream.destroy();
        reject(new Error(`${word} was not answered within ${timeoutMs} ms`));
      }, timeoutMs);
    });
  }

  /** @throws Error when certificates or keys cannot be read or used */
  #open({ host, port, address }: Target, onread: OnReadOpts): Socket {
    const tls = typeof this.#tls === 'function' ? this.#tls() : this.#tls;
    const socket =
      tls === null
        ? connectTcp({ host: address, port, onread })
        : connectTls({
            // An address is not allowed as a server name (RFC 6066 §3).
            ...(isIP(host) === 0 ? { servername: host } : {}),
            ...tls,
            ...{ host: address, port, onread, path: undefined, socket: undefined },
          });
    // Disables Nagle's algorithm, so that small requests are not delayed; keep-alive detects a peer that vanished.
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    return socket;
  }
}

/** Silence after which the kernel probes the peer. The session's own pings come sooner, while it has a server. */
const KEEP_ALIVE_MS = 30_000;
