import type { AttemptFailure, Target } from '../machine/ports.ts';

/** What a stream tells its owner. Each is an event of its own: none comes before `connect` has returned. */
export interface TransportEvents {
  /** The stream is there; with TLS, after the handshake. Told at most once. */
  onOpen(): void;
  /** Bytes arrived. The memory is used again once the receiver returns: what is kept longer is copied. */
  onBytes(chunk: Uint8Array): void;
  /**
   * The stream is gone, or never came to be; told once, nothing follows.
   *
   * @param failure null when the other side closed cleanly
   * @param detail what the system said, for people
   */
  onClosed(failure: AttemptFailure | null, detail: string): void;
}

/** A stream of bytes to one server: first in, first out, until it breaks. */
export interface TransportStream {
  /**
   * Sends bytes, all of them or, when the stream breaks, some or none. Never throws.
   *
   * @returns true when the bytes have left, so that the memory may be used again
   */
  write(bytes: Uint8Array): boolean;
  /** Closes at once; what has not left is lost. No event follows. */
  destroy(): void;
}

/** How a client reaches servers. The real one has sockets; the simulator brings a network of its own. */
export interface Transport {
  /** Looks up all addresses of a host, again at each call. Rejects with the system's error. */
  resolve(host: string): Promise<readonly string[]>;
  /** Begins to connect and returns at once; never throws. There is no time limit here: the caller has one. */
  connect(target: Target, events: TransportEvents): TransportStream;
  /**
   * Sends a four-letter word on a connection of its own.
   *
   * @returns the whole answer, once the server has closed; rejects when there was none within the time
   */
  probe(target: Target, word: string, timeoutMs: number): Promise<string>;
}
