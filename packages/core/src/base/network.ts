/* The port to other servers and to clients; `ports.ts` has the rules. */

/** Address of the other end of a stream. */
export interface PeerAddress {
  /** 4 or 16 bytes; a v4 address that arrived mapped into v6 is given as 4 bytes. */
  readonly ip: Uint8Array;
  /** The same as text, without brackets. */
  readonly host: string;
  readonly port: number;
}

/** The names in a certificate. */
export interface PeerCertificate {
  /** The distinguished name as RFC 2253 writes it, the last part first: `CN=ann,O=Example`. */
  readonly subject: string;
  /** The other names, each with its kind as prefix: `DNS:a.example`, `URI:…`, `email:…`, `IP:…`. */
  readonly alternativeNames: readonly string[];
}

/** A byte stream to one peer: first in, first out, until it breaks. */
export interface ByteStream {
  readonly remote: PeerAddress;
  /**
   * True for a stream that was accepted although the host's limit for its kind was reached. Another stream that is no
   * longer useful must be closed instead, or this one.
   */
  readonly isCrowding?: boolean;
  /** The peer's certificate, verified by the host; null or omitted: none. */
  readonly certificate?: PeerCertificate | null;
  /**
   * For a server that has connected: the hosts of the membership that its certificate names. It may only act as a
   * member at one of these hosts. Null or omitted: names are not checked.
   */
  readonly certifiedHosts?: readonly string[] | null;
  /** True when it is encrypted (TLS). Omitted: false. */
  readonly isSecure?: boolean;
  /** Bytes given to `write` that the peer's kernel has not accepted yet. */
  readonly queuedBytes: number;
  /**
   * Sends bytes. While `queuedBytes` is not 0 afterwards, the bytes belong to the stream until `onDrain`; when it is 0,
   * they have been sent and the caller may reuse the memory.
   */
  write(bytes: Uint8Array): void;
  /** Closes after everything written so far has been sent. `onClosed` follows. */
  end(): void;
  /** Closes at once; what is queued is lost. `onClosed` follows. */
  destroy(): void;
  /** No `onBytes` until `resume`. Bytes then queue in the kernels and eventually stop the peer. */
  pause(): void;
  resume(): void;
  /**
   * From now on reads into memory provided by the owner: calls `room` for each chunk, which is placed at the beginning
   * of the memory last returned. It calls `room` again only after `onBytes` has returned. Omitted by a stream that uses
   * its own memory.
   */
  readInto?(room: () => Uint8Array): void;
}

/** Events of a stream, delivered to its owner. */
export interface StreamEvents {
  /** Bytes arrived. The receiver may keep the chunk: it is never overwritten, except with `readInto`. */
  onBytes(chunk: Uint8Array): void;
  /** Everything queued has been sent. */
  onDrain(): void;
  /** The stream is gone. Called once; nothing follows. `reason` is for humans: "closed by peer", "ECONNRESET". */
  onClosed(reason: string): void;
  /**
   * True while more of an answer follows in later turns, then `end`: a peer that has closed its sending side still
   * reads. Omitted or false: such a stream is closed once everything written has been sent.
   */
  readonly isAnswering?: boolean;
  /** The peer has closed its sending side while `isAnswering`. */
  onHalfClosed?(): void;
}

/** A listening address. */
export interface Endpoint {
  /** A name, resolved again at each attempt, or an address. */
  readonly host: string;
  readonly port: number;
}

export interface ListenEvents {
  onListening(): void;
  /** Not listening: called instead of `onListening`, or when listening ends by itself. */
  onListenFailed(reason: string): void;
  onAccepted(stream: ByteStream): StreamEvents;
}

export interface ConnectEvents {
  onConnected(stream: ByteStream): StreamEvents;
  /** The connection failed. `reason` is for humans: "refused", "unknown host", "ETIMEDOUT". */
  onConnectFailed(reason: string): void;
}

/** Streams to and from other servers. */
export interface Network {
  /** @returns a handle that stops listening; accepted streams stay open */
  listen(at: Endpoint, events: ListenEvents): { close(): void };
  /** Tries once. @returns a handle that cancels: no event follows, and a stream that still opens is destroyed */
  connect(to: Endpoint, events: ConnectEvents): { cancel(): void };
}
