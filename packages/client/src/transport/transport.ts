import type { AttemptFailure, Target } from '../machine/ports.ts';

/** Events of a stream. Each is asynchronous: none comes before `connect` has returned. */
export interface TransportEvents {
  /** The stream is open; with TLS, after the handshake. Called at most once. */
  onOpen(): void;
  /** Bytes arrived. The memory is reused once the receiver returns: copy what is kept longer. */
  onBytes(chunk: Uint8Array): void;
  /**
   * The stream is gone, or was never open; called once, nothing follows.
   *
   * @param failure null when the other side closed cleanly
   * @param detail the system's message, for people
   */
  onClosed(failure: AttemptFailure | null, detail: string): void;
}

/** A stream of bytes to one server: first in, first out, until it breaks. */
export interface TransportStream {
  /**
   * Sends bytes, all of them or, when the stream breaks, some or none. Never throws.
   *
   * @returns true when the bytes have been written, so that the memory may be reused
   */
  write(bytes: Uint8Array): boolean;
  /** Closes at once; unsent data is lost. No event follows. */
  destroy(): void;
}

/** How a client reaches servers: by sockets, or in the simulator by a virtual network. */
export interface Transport {
  /** Looks up all addresses of a host, again at each call. Rejects with the system's error. */
  resolve(host: string): Promise<readonly string[]>;
  /** Starts to connect and returns at once; never throws. There is no timeout here: the caller has one. */
  connect(target: Target, events: TransportEvents): TransportStream;
  /**
   * Sends a four-letter word on a separate connection.
   *
   * @returns the complete answer, once the server has closed; rejects when there was none in time
   */
  probe(target: Target, word: string, timeoutMs: number): Promise<string>;
}
