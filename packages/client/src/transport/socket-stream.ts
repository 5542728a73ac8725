import type { OnReadOpts, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { AttemptFailure } from '../machine/ports.ts';
import type { TransportEvents, TransportStream } from './transport.ts';

/**
 * A socket as a stream of the transport.
 *
 *     opening ──connect──► TLS handshake ──secureConnect──► open ──► over
 *        │                      │                                     ▲
 *        └──────────────────────┴── error, end, destroy ──────────────┘
 *
 * The transition to `over` is reported exactly once, unless it is `destroy`.
 */
export class SocketStream implements TransportStream {
  readonly #isTls: boolean;
  readonly #events: TransportEvents;
  /** null when the socket could not even be created. */
  #socket: Socket | null = null;
  #isConnected = false;
  #isOpen = false;
  #isOver = false;
  /** The client's part of the handshake was complete before the server had checked its certificate. */
  #isTrustOpen = false;

  /** @param open creates the socket; what it throws is reported as an event */
  constructor(open: (onread: OnReadOpts) => Socket, isTls: boolean, events: TransportEvents) {
    this.#isTls = isTls;
    this.#events = events;
    try {
      // One buffer for all reads: Node would allocate 64 KiB for each, and shrink it.
      this.#socket = open({ buffer: new Uint8Array(READ_BYTES), callback: this.#onRead });
    } catch (error) {
      const failure = isTls ? 'tls' : 'unreachable';
      setImmediate(() => this.#end(failure, error instanceof Error ? error.message : String(error)));
      return;
    }
    this.#listen(this.#socket);
  }

  write(bytes: Uint8Array): boolean {
    const socket = this.#socket;
    if (socket === null || this.#isOver) return true;
    socket.write(bytes);
    // The bytes are passed to the kernel at once; those that it did not accept, or TLS has not encrypted, are still
    // needed.
    return socket.writableLength === 0;
  }

  destroy(): void {
    this.#isOver = true;
    this.#socket?.destroy();
  }

  #listen(socket: Socket): void {
    socket.once('connect', () => {
      this.#isConnected = true;
      if (!this.#isTls) this.#onOpen();
    });
    if (this.#isTls) socket.once('secureConnect', this.#onOpen);
    // It stays for the life of the socket: errors of an abandoned one do not matter, but need a listener.
    socket.on('error', (error: SocketError) => this.#end(this.#classify(error), this.#describe(error)));
    // The other side has closed. Node would first send queued data, which may never succeed, before it reports that.
    socket.once('end', this.#onEnd);
    socket.once('close', this.#onEnd);
  }

  readonly #onOpen = (): void => {
    if (this.#isOver) return;
    this.#isOpen = true;
    this.#isTrustOpen = this.#socket instanceof TLSSocket && this.#socket.getProtocol() === 'TLSv1.3';
    this.#events.onOpen();
  };

  readonly #onRead = (count: number, buffer: Uint8Array): boolean => {
    this.#isTrustOpen = false;
    // Never a Buffer: the machine always gets the same type, whatever the transport.
    if (!this.#isOver) this.#events.onBytes(new Uint8Array(buffer.buffer, buffer.byteOffset, count));
    return true;
  };

  readonly #onEnd = (): void => {
    if (this.#isTls && !this.#isOpen) this.#end('tls', 'the server closed the connection in the TLS handshake');
    else this.#end(null, `the server closed the connection${this.#suspicion()}`);
  };

  #end(failure: AttemptFailure | null, detail: string): void {
    if (this.#isOver) return;
    this.destroy();
    this.#events.onClosed(failure, detail);
  }

  #classify(error: SocketError): AttemptFailure {
    const code = error.code ?? '';
    // Errors between the TCP connection and the end of the TLS handshake are handshake errors. An alert may come later:
    // in TLS 1.3 the client completes before the server has checked its certificate.
    if (this.#isTls && this.#isConnected && (!this.#isOpen || TLS_ERROR.test(code))) return 'tls';
    if (code === 'ECONNREFUSED') return 'refused';
    return code === 'ETIMEDOUT' ? 'timed-out' : 'unreachable';
  }

  #describe(error: SocketError): string {
    // OpenSSL's messages contain source locations; the reason is in a separate field.
    if (error.library !== undefined && error.reason !== undefined) return `${error.library}: ${error.reason}`;
    return error.message + (error.code === 'ECONNRESET' || error.code === 'EPIPE' ? this.#suspicion() : '');
  }

  /** A refused certificate may look like a server that just closes: the alert is lost when the connection is reset. */
  #suspicion(): string {
    if (!this.#isTrustOpen) return '';
    return ' right after the TLS handshake: it may have refused the certificate of this client, or miss one';
  }
}

interface SocketError extends NodeJS.ErrnoException {
  /** Of OpenSSL's errors: "SSL routines" and "sslv3 alert bad certificate", for instance. */
  readonly library?: string;
  readonly reason?: string;
}

/** OpenSSL's errors, including alerts, and those that are reported as a protocol error of the system. */
const TLS_ERROR = /^(ERR_SSL_|ERR_TLS_|EPROTO$)/;

const READ_BYTES = 64 * 1024;
