import type { BackOff } from './dialer.ts';
import type { FailedAttempt, HostPort, SaslExchange, Target } from './ports.ts';
import type { StateChange } from './state.ts';

/** Effects of the session. They return at once; their completion is an event, unless noted. */
export interface SessionEffects {
  /** Looks a host name up; `onResolved` follows. */
  resolve(host: HostPort): void;
  /** Connects; `onPrepared` where there is SASL, `onOpened`, `onBytes` and `onStreamClosed` follow. There is one stream at a time. */
  open(target: Target): void;
  /** @returns true when the bytes have been written, so that the memory may be reused */
  write(bytes: Uint8Array): boolean;
  /** Closes the stream, or aborts opening it. No event of it follows. */
  closeStream(): void;
  /** Requests a call of `flush` once all code that is running now has completed. */
  flushSoon(): void;
  /** Asks a server on a separate connection whether it is read-write (`isro`); `onProbed` follows. */
  probe(host: HostPort): void;
}

/** Notifications of the session. Called during events: listeners must not call back into the session. */
export interface SessionListener {
  onState(change: StateChange): void;
  /**
   * The session timeout has passed since a server with a quorum answered, while others did (`canBeReadOnly`): the
   * session may be over although the state is not `lost`. Not called when `lost` is reported.
   */
  onUnsure(reason: string): void;
  /** Called before the closeSession request: the server ends the session before this client knows. */
  onClosing(): void;
  onAttemptFailed(attempt: FailedAttempt): void;
  /** The event loop was blocked for this many milliseconds, long enough to endanger the session. */
  onStall(stalledMs: number): void;
}

export interface SessionIdentity {
  readonly id: bigint;
  readonly password: Uint8Array;
  /**
   * As negotiated by the previous process of the session, milliseconds: it is certain for no longer. Default: not
   * known.
   */
  readonly timeoutMs?: number | undefined;
}

export interface SessionOptions {
  readonly hosts: readonly HostPort[];
  /** Requested; the server limits it. Milliseconds. */
  readonly sessionTimeoutMs: number;
  /** Limit of one attempt to reach a server, from the name lookup to the end of the handshake. Milliseconds. */
  readonly attemptTimeoutMs: number;
  readonly backOff: BackOff;
  /** Also accepts a server without a quorum, for reads. */
  readonly canBeReadOnly: boolean;
  /** A session to resume; null for a new one. */
  readonly session: SessionIdentity | null;
  readonly credentials: readonly { readonly scheme: string; readonly auth: Uint8Array }[];
  /** Creates the client's half of a SASL exchange; null for none. */
  readonly sasl: (() => SaslExchange) | null;
  /** Longest request frame that servers accept (jute.maxbuffer). Bytes. */
  readonly requestBytesMax: number;
  /** Longest reply frame that is accepted. Bytes. */
  readonly replyBytesMax: number;
}
