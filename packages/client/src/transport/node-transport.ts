import { lookup } from 'node:dns/promises';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { AttemptFailure, Target } from '../machine/ports.ts';
import type { Transport, TransportEvents, TransportStream } from './transport.ts';

/** Options of Node's `tls.connect`; a function is asked anew for each connection, so that certificates may change. */
export type TlsOptions = ConnectionOptions | (() => ConnectionOptions);

/** Sockets of Node.js, with TLS if asked. */
export function makeNodeTransport(options: { readonly tls?: TlsOptions | undefined } = {}): Transport {
  return new NodeTransport(options.tls);
}

class NodeTransport implements Transport {
  readonly #tls: TlsOptions | undefined;

  constructor(tls: TlsOptions | undefined) {
    this.#tls = tls;
  }

  async resolve(host: string): Promise<readonly string[]> {
    if (isIP(host) !== 0) return [host];
    const found = await lookup(host, { all: true, verbatim: true });
    return [...new Set(found.map(({ address }) => address))];
  }

  connect(target: Target, events: TransportEvents): TransportStream {
    const tls = typeof this.#tls === 'function' ? this.#tls() : this.#tls;
    return new NodeStream(open(target, tls), tls !== undefined, events);
  }

  probe(target: Target, word: string, timeoutMs: number): Promise<string> {
    const tls = typeof this.#tls === 'function' ? this.#tls() : this.#tls;
    return new Promise((resolve, reject) => {
      const socket = open(target, tls);
      const chunks: Buffer[] = [];
      const timer = setTimeout(() => socket.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      socket.once(tls === undefined ? 'connect' : 'secureConnect', () => socket.write(word));
      socket.on('data', (chunk: Buffer) => chunks.push(chunk));
      socket.once('error', reject);
      socket.once('close', () => {
        clearTimeout(timer);
        resolve(Buffer.concat(chunks).toString('latin1'));
      });
    });
  }
}

/** Small requests must not wait for each other (Nagle), and a peer that vanished is to be noticed by the kernel too. */
function open({ host, port, address }: Target, tls: ConnectionOptions | undefined): Socket {
  const socket =
    tls === undefined
      ? connectTcp({ host: address, port })
      : // The certificate is checked against the name in the connect string, whatever address it stands for.
        connectTls({ ...(isIP(host) === 0 ? { servername: host } : {}), ...tls, host: address, port });
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
  return socket;
}

class NodeStream implements TransportStream {
  readonly #socket: Socket;
  readonly #isTls: boolean;
  readonly #events: TransportEvents;
  #isOpen = false;
  #isConnected = false;
  #error: NodeJS.ErrnoException | null = null;

  constructor(socket: Socket, isTls: boolean, events: TransportEvents) {
    this.#socket = socket;
    this.#isTls = isTls;
    this.#events = events;
    socket.once('connect', () => {
      this.#isConnected = true;
      if (!isTls) this.#onOpen();
    });
    if (isTls) socket.once('secureConnect', this.#onOpen);
    // A plain array of bytes, so that the machine sees one kind of object everywhere.
    socket.on('data', (chunk: Buffer) => events.onBytes(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length)));
    socket.once('error', (error) => {
      this.#error = error;
    });
    socket.once('close', this.#onClosed);
  }

  write(bytes: Uint8Array): boolean {
    if (this.#socket.destroyed) return true;
    this.#socket.write(bytes);
    // The kernel is offered the bytes at once; what it did not take is still needed.
    return this.#socket.writableLength === 0;
  }

  destroy(): void {
    this.#socket.off('close', this.#onClosed);
    this.#socket.removeAllListeners('data');
    this.#socket.removeAllListeners('secureConnect');
    this.#socket.removeAllListeners('connect');
    this.#socket.destroy();
  }

  readonly #onOpen = (): void => {
    this.#isOpen = true;
    this.#events.onOpen();
  };

  readonly #onClosed = (): void => {
    const error = this.#error;
    if (error === null) {
      const isUnfinished = this.#isTls && !this.#isOpen;
      this.#events.onClosed(isUnfinished ? 'tls' : null, 'closed by the server');
    } else this.#events.onClosed(this.#classify(error), error.message);
  };

  #classify(error: NodeJS.ErrnoException): AttemptFailure {
    switch (error.code) {
      case 'ECONNREFUSED':
        return 'refused';
      case 'ETIMEDOUT':
        return 'timed-out';
      default:
        // What goes wrong between the TCP connection and the end of the TLS handshake is the handshake.
        return this.#isTls && this.#isConnected && !this.#isOpen ? 'tls' : 'unreachable';
    }
  }
}

const KEEP_ALIVE_MS = 30_000;
