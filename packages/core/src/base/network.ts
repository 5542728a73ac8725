/* The port to other servers and to clients; `ports.ts` has the rules. */

/** Where the other end of a stream is. */
export interface PeerAddress {
  /** 4 or 16 bytes; a v4 address that arrived mapped into v6 is given as 4 bytes. */
  readonly ip: Uint8Array;
  /** The same as text, without brackets. */
  readonly host: string;
  readonly port: number;
}

/** Who a certificate says that its owner is. */
export interface PeerCertificate {
  /** The distinguished name as RFC 2253 writes it, the last part first: `CN=ann,O=Example`. */
  readonly subject: string;
  /** The other names, each behind its kind: `DNS:a.example`, `URI:…`, `email:…`, `IP:…`. */
  readonly alternativeNames: readonly string[];
}

/** A stream of bytes to one peer: first in, first out, until it breaks. */
export interface ByteStream {
  readonly remote: PeerAddress;
  /**
   * True of a stream that was accepted although others have taken all room that the host has for its kind. One that is of
   * no use is to be closed in its place, or this one.
   */
  readonly isCrowding?: boolean;
  /** What the peer has shown when it connected, checked by the host; null or left out: nothing. */
  readonly certificate?: PeerCertificate | null;
  /**
   * Of a server that has connected: the hosts of the membership that its certificate names. It may come as the members at
   * these hosts and as no other. Null or left out: names are not checked.
   */
  readonly certifiedHosts?: readonly string[] | null;
  /** True when it is encrypted (TLS). Left out: it is not. */
  readonly isSecure?: boolean;
  /** Bytes given to `write` that the peer's kernel has not accepted yet. */
  readonly queuedBytes: number;
  /**
   * Sends bytes. While `queuedBytes` is not 0 afterwards, the bytes belong to the stream until `onDrain`;
   * when it is 0, they have left and the caller may use the memory again.
   */
  write(bytes: Uint8Array): void;
  /** Closes after everything written so far has left. `onClosed` follows. */
  end(): void;
  /** Closes at once; what is queued is lost. `onClosed` follows. */
  destroy(): void;
  /** No `onBytes` until `resume`. Bytes then queue in the kernels and at last stop the peer. */
  pause(): void;
  resume(): void;
  /**
   * Reads into memory of the owner's from now on: for each chunk it asks for some, and the chunk lies at the beginning of what it
   * was last given. It asks again once `onBytes` has returned. Left out by a stream that reads into memory of its own.
   */
  readInto?(room: () => Uint8Array): void;
}

/** What a stream tells its owner. */
export interface StreamEvents {
  /** Bytes arrived. The chunk is the receiver's to keep; nobody writes to it again, but for `readInto`. */
  onBytes(chunk: Uint8Array): void;
  /** Everything queued has left. */
  onDrain(): void;
  /** The stream is gone, told once; nothing follows. `reason` is for people: "closed by peer", "ECONNRESET". */
  onClosed(reason: string): void;
  /**
   * True while more of an answer follows in later turns, then `end`: a peer that has closed its own end of the stream still
   * reads. Left out or false: such a stream is closed once what was written has left.
   */
  readonly isAnswering?: boolean;
  /** The peer has closed its own end while `isAnswering`. */
  onHalfClosed?(): void;
}

/** Where somebody listens. */
export interface Endpoint {
  /** A name, resolved anew at each attempt, or an address. */
  readonly host: string;
  readonly port: number;
}

export interface ListenEvents {
  onListening(): void;
  /** Nobody can connect; told instead of `onListening`, or when listening ends by itself. */
  onListenFailed(reason: string): void;
  onAccepted(stream: ByteStream): StreamEvents;
}

export interface ConnectEvents {
  onConnected(stream: ByteStream): StreamEvents;
  /** There is no connection. `reason` is for people: "refused", "unknown host", "ETIMEDOUT". */
  onConnectFailed(reason: string): void;
}

/** Streams to and from other servers. */
export interface Network {
  /** @returns ends the listening; streams that were accepted live on */
  listen(at: Endpoint, events: ListenEvents): { close(): void };
  /** Tries once. @returns gives up: nothing is told any more, and a stream that opens meanwhile is destroyed */
  connect(to: Endpoint, events: ConnectEvents): { cancel(): void };
}
