import type { ErrorCode, JuteWriter, Request } from '@meerkat/protocol';
import type { Identity } from '../ports.ts';
import type { Session } from '../session/session.ts';
import type { Watcher } from '../watch/watch-manager.ts';

/** A request on its way: what its reply needs. */
export interface RequestContext {
  readonly client: Client;
  readonly xid: number;
  readonly op: number;
  /** Monotonic milliseconds, for the latency. */
  readonly receivedMs: number;
}

/** A client's connection, as the request pipeline sees it. */
export interface Client extends Watcher {
  /** null until the connect request has been answered. */
  readonly session: Session | null;
  /** Who the client has shown to be, `ip` included. */
  readonly identities: readonly Identity[];
  /** False once the connection is gone or going; nothing is sent any more. */
  readonly isOpen: boolean;
  /** Requests that wait for their turn, oldest first. */
  readonly waiting: WaitingRequest[];
  /** True when so many replies are queued that no further request should be answered for now. */
  readonly isOutputFull: boolean;
  /** Starts a reply. Its record is written to the returned writer; `endReply` completes it. */
  beginReply(xid: number, zxid: number, error: ErrorCode): JuteWriter;
  endReply(context: RequestContext): void;
  /** Closes once everything written has left. */
  closeAfterReplies(reason: string): void;
}

/**
 * A request that waits behind an earlier write of its own session.
 *
 * - `write`: its proposal is in flight; the commit answers it.
 * - `sync`: answered once everything that had been proposed when it came is committed.
 * - `read`: executed when it becomes the oldest.
 * - `error`: answered with a code when it becomes the oldest; `isLast` closes the connection then.
 */
export type WaitingRequest = RequestContext &
  (
    | { readonly kind: 'write'; readonly zxid: number }
    | { readonly kind: 'sync'; readonly zxid: number; readonly path: string }
    | { readonly kind: 'read'; readonly request: Request }
    | { readonly kind: 'error'; readonly error: ErrorCode; readonly isLast: boolean }
  );
