import type { Request } from '@meerkat/protocol';
import type { ReplyReader } from './replies.ts';
import type { WatchListener } from './watch-listener.ts';

/** Why a request has no result. The caller knows its path and operation. */
export type CallFailure =
  /** The server answered with an error code. */
  | { readonly kind: 'refused'; readonly code: number; readonly server: string | null }
  /** The connection broke, the session was lost, the client closed …; `wasSent`: the server may have applied it. */
  | { readonly kind: FailureKind; readonly wasSent: boolean; readonly server: string | null; readonly detail: string };

export type FailureKind =
  | 'connection-lost'
  | 'session-lost'
  | 'session-expired'
  | 'auth-failed'
  | 'closed'
  | 'timed-out'
  | 'aborted'
  /** The request exceeds the frame size that servers accept (jute.maxbuffer). */
  | 'request-too-large'
  /** A field of the request has a value that the record cannot hold, contrary to its type. */
  | 'malformed-request'
  /** The bytes from the server are not a reply to this request. */
  | 'bad-reply';

/**
 * One request, from the call to its reply.
 *
 * All fields exist from the start, in one order: thousands of these are in flight at once.
 */
export class Call {
  readonly request: Request;
  readonly read: ReplyReader;
  /** Receives the result of `read`. */
  readonly resolve: (result: never) => void;
  readonly reject: (failure: CallFailure) => void;
  /** The listener of the watch that this request sets; null for none. */
  readonly listener: WatchListener | null;
  /** Sending it twice has the same effect as once: it is retried after a lost connection. */
  readonly isRepeatable: boolean;
  /** 0 = not sent yet. */
  xid = 0;
  /** Monotonic milliseconds. */
  sentAtMs = 0;
  /**
   * The value of `#removals` when its one-shot watch was left to a persistent one (`Watches.isCovered`); −1 when it was
   * not.
   */
  coveredAt = -1;
  /** Connections that were lost while it was in flight. */
  losses = 0;
  /** Resolved, rejected or cancelled: a later reply is dropped. */
  isSettled = false;

  constructor(
    request: Request,
    read: ReplyReader,
    resolve: (result: never) => void,
    reject: (failure: CallFailure) => void,
    listener: WatchListener | null,
    isRepeatable: boolean,
  ) {
    this.request = request;
    this.read = read;
    this.resolve = resolve;
    this.reject = reject;
    this.listener = listener;
    this.isRepeatable = isRepeatable;
  }

  /** Settles it without a result, unless it is settled. @param server host:port; null when none was reached */
  fail(kind: FailureKind, server: string | null, detail: string): void {
    if (this.isSettled) return;
    this.isSettled = true;
    this.reject({ kind, wasSent: this.wasSent, server, detail });
  }

  /** The server may have applied it. */
  get wasSent(): boolean {
    return this.xid !== 0 || this.losses > 0;
  }
}
