import { lookup } from 'node:dns/promises';
import { connect as connectTcp, isIP, type OnReadOpts, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { Target } from '../machine/ports.ts';
import { SocketStream } from './socket-stream.ts';
import type { Transport, TransportEvents, TransportStream } from './transport.ts';

/**
 * What TLS needs to know: the options of Node's `tls.connect`, without those that say where to connect to.
 *
 * The certificate of the server is checked against the host as the connect string names it, whatever address that
 * stands for; `servername` names another.
 */
export type TlsConnectionOptions = Omit<ConnectionOptions, 'host' | 'port' | 'path' | 'socket' | 'lookup' | 'timeout'>;

/** A function is asked again for each connection, so that certificates may change while the client lives. */
export type TlsOptions = TlsConnectionOptions | (() => TlsConnectionOptions);

export interface NodeTransportOptions {
  /** Default: plain TCP. */
  readonly tls?: TlsOptions | undefined;
}

/**
 * Sockets of Node.js, with TLS if asked.
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
    // The system lists an address once for each kind of socket.
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
          // Only letters are expected; a byte is a character, so that none is cut in two.
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
            // An address is no name that a server could be asked for (RFC 6066 §3).
            ...(isIP(host) === 0 ? { servername: host } : {}),
            ...tls,
            ...{ host: address, port, onread, path: undefined, socket: undefined },
          });
    // Small requests must not wait for each other (Nagle), and the kernel is to notice a peer that vanished.
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    return socket;
  }
}

/** Silence after which the kernel asks the other side. The session's own pings come sooner, while it has a server. */
const KEEP_ALIVE_MS = 30_000;
