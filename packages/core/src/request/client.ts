import type { ErrorCode, JuteWriter, Request } from '@meerkat/protocol';
import type { Identity } from '../ports.ts';
import type { Session } from '../session/session.ts';
import type { Watcher } from '../watch/watch-manager.ts';

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
  /** True when more is queued than any client may leave untaken: it is to be disconnected. */
  readonly hasTooMuchOutput: boolean;
  /** Starts a reply. Its record is written to the returned writer; `endReply` completes it. */
  beginReply(xid: number, zxid: number, error: ErrorCode): JuteWriter;
  /** @param receivedMs when the request came, monotonic milliseconds, for the latency */
  endReply(receivedMs: number): void;
  /** Closes; what is queued is lost. */
  close(reason: string): void;
  /** Closes once everything written has left. */
  closeAfterReplies(reason: string): void;
}

/** What the pipeline asks of the client of a session that begins. */
export interface SessionClient extends Client {
  onSessionCreated(session: Session): void;
}

interface Waiting {
  readonly xid: number;
  /** Monotonic milliseconds. */
  readonly receivedMs: number;
}

/** It is on its way to become a txn; the commit answers it. */
export interface WaitingWrite extends Waiting {
  readonly kind: 'write';
  readonly op: number;
  /**
   * Of a multi whose txn comes from another server, the op codes of its parts: the txn does not tell a create2 from a
   * create. Otherwise null.
   */
  readonly partOps: readonly number[] | null;
  /** null: a server asks on its own account, or a client of another one, and nothing is answered here. */
  readonly client: Client | null;
}

/** Answered once its ticket is: everything committed before it was asked is then applied. */
export interface WaitingSync extends Waiting {
  readonly kind: 'sync';
  readonly ticket: number;
  readonly path: string;
}

/** Executed when it is the oldest. */
export interface WaitingRead extends Waiting {
  readonly kind: 'read';
  readonly request: Request;
}

/** Answered with a code when it is the oldest; `isLast` closes the connection then. */
export interface WaitingError extends Waiting {
  readonly kind: 'error';
  readonly error: ErrorCode;
  readonly isLast: boolean;
}

/** A request that waits behind an earlier write of its own session. */
export type WaitingRequest = WaitingWrite | WaitingSync | WaitingRead | WaitingError;
