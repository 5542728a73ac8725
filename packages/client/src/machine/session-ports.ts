import type { BackOff } from './dialer.ts';
import type { FailedAttempt, HostPort, SaslExchange, Target } from './ports.ts';
import type { StateChange } from './state.ts';

/** What the session asks of the world. Effects return at once; their completion is an event, unless noted. */
export interface SessionEffects {
  /** Looks a host name up; `onResolved` follows. */
  resolve(host: HostPort): void;
  /** Connects; `onPrepared` where there is SASL, `onOpened`, `onBytes` and `onStreamClosed` follow. There is one stream at a time. */
  open(target: Target): void;
  /** @returns true when the bytes have left, so that the memory may be used again */
  write(bytes: Uint8Array): boolean;
  /** Closes the stream, or gives up opening it. No event of it follows. */
  closeStream(): void;
  /** `flush` is wanted once everything that is running now has come to its end. */
  flushSoon(): void;
  /** Asks a server in a connection of its own whether it is read-write (`isro`); `onProbed` follows. */
  probe(host: HostPort): void;
}

/** Notifications of the session. Called in the middle of events: listeners must not call back into it. */
export interface SessionListener {
  onState(change: StateChange): void;
  /**
   * The session timeout has passed since a server with a quorum answered, while others did (`canBeReadOnly`): the session
   * may be over although the state is not `lost`. Where it is, that is reported instead.
   */
  onUnsure(reason: string): void;
  /** The server is about to be asked to end the session, which it does before this client learns of it. */
  onClosing(): void;
  onAttemptFailed(attempt: FailedAttempt): void;
  /** The event loop did not run for so many milliseconds, long enough to endanger the session. */
  onStall(stalledMs: number): void;
}

export interface SessionIdentity {
  readonly id: bigint;
  readonly password: Uint8Array;
  /** As negotiated by the process that had the session before, milliseconds: it is certain for no longer. Default: not known. */
  readonly timeoutMs?: number | undefined;
}

export interface SessionOptions {
  readonly hosts: readonly HostPort[];
  /** Wanted; the server decides within its limits. Milliseconds. */
  readonly sessionTimeoutMs: number;
  /** One attempt to reach a server, from the look-up of its name to the end of the handshake. Milliseconds. */
  readonly attemptTimeoutMs: number;
  readonly backOff: BackOff;
  /** Also takes a server without a quorum, for reads. */
  readonly canBeReadOnly: boolean;
  /** A session to continue; null for a new one. */
  readonly session: SessionIdentity | null;
  readonly credentials: readonly { readonly scheme: string; readonly auth: Uint8Array }[];
  /** Makes the client's half of a SASL exchange; null for none. */
  readonly sasl: (() => SaslExchange) | null;
  /** Longest request frame that servers take (jute.maxbuffer). Bytes. */
  readonly requestBytesMax: number;
  /** Longest reply frame that is believed. Bytes. */
  readonly replyBytesMax: number;
}
