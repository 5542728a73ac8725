import type { ErrorCode, JuteChunks, JuteWriter, ReadRequest, Zxid } from '@meerkat/protocol';
import type { Identity, PeerAddress } from '../base/ports.ts';
import type { Session } from '../session/session.ts';
import type { Watcher } from '../watch/watch-manager.ts';
import type { WaitingRequests } from './waiting-requests.ts';

/** A client's connection, as the request pipeline sees it. */
export interface Client extends Watcher {
  readonly remote: PeerAddress;
  /** null until the connect request has been answered. */
  readonly session: Session | null;
  /** Who the client has shown to be, `ip` included. */
  readonly identities: readonly Identity[];
  /** False once the connection is gone or going; nothing is sent any more. */
  readonly isOpen: boolean;
  /** What it has asked and was not answered yet; the pipeline keeps it. */
  readonly waiting: ClientRequests;
  readonly output: ReplyOutput;
  /** True when no further request should be answered for now: replies are queued, or it has had its share of this turn. */
  readonly isSated: boolean;
  /** True when it has had its share of this turn. */
  readonly hasHadShare: boolean;
  /** True when others have used up this turn and it is not this client's own: what it asks for that is long begins in one of the next. */
  readonly isTurnSpent: boolean;
  /** It can do nothing more in this turn; `Pipeline.answerWaiting` is called for it in one of the next. */
  awaitTurn(): void;
  /** Counts what a request of it has cost besides what the work meter says; too much makes it wait for the next turn. */
  charge(units: number): void;
  /** Closes; what is queued is lost. */
  close(reason: string): void;
  /** Closes once everything written has left. */
  closeAfterReplies(reason: string): void;
}

/** Where the replies to a client are written. */
export interface ReplyOutput {
  /** True when more is queued than any client may leave untaken: it is to be disconnected. */
  readonly isTooMuch: boolean;
  /** Starts a reply. Its record is written to the returned writer; `endReply` completes it. */
  beginReply(xid: number, zxid: number, error: ErrorCode): JuteWriter;
  /** @param receivedMs when the request came, monotonic milliseconds, for the latency */
  endReply(receivedMs: number): void;
  /** A reply whose record has been written before. */
  reply(xid: number, zxid: number, record: JuteChunks, receivedMs: number): void;
  /** From here on events wait, until they come behind the next reply. */
  holdEvents(): void;
}

/** What the pipeline asks of the client of a session that begins. */
export interface SessionCreator {
  readonly isOpen: boolean;
  onSessionCreated(session: Session): void;
  close(reason: string): void;
}

interface Waiting {
  readonly xid: number;
  /** Monotonic milliseconds. */
  readonly receivedMs: number;
}

/** It waits behind a write of its own session. */
interface WaitingBehindWrite extends Waiting {
  /** What it keeps in memory, about. */
  readonly bytes: number;
}

/** It is on its way to become a txn; the commit answers it. */
export interface WaitingWrite extends Waiting {
  readonly kind: 'write';
  readonly op: number;
  /** Of its request, or of its txn once it has one. */
  readonly bytes: number;
  /**
   * Of a multi whose txn comes from another server, the op codes of its parts: the txn does not tell a create2 from a
   * create. Otherwise null.
   */
  readonly partOps: readonly number[] | null;
  /** null: a server asks on its own account, or a client of another one, and nothing is answered here. */
  readonly client: Client | null;
}

/** Answered once its ticket is: everything committed before it was asked is then applied. */
export interface WaitingSync extends WaitingBehindWrite {
  readonly kind: 'sync';
  readonly ticket: number;
  /** What was committed when it came: all of it is applied first. */
  readonly after: Zxid;
  readonly path: string;
}

/** Executed when it is the oldest, which may take several turns. */
export interface WaitingRead extends WaitingBehindWrite {
  readonly kind: 'read';
  readonly request: ReadRequest;
  /** It takes several turns: nothing more is accepted behind it. `WaitingRequests` counts. */
  isLong: boolean;
  /** What goes on until it is done; null until it has begun. */
  long: LongRead | null;
}

/** Answered with a code when it is the oldest; `isLast` closes the connection then. */
export interface WaitingError extends WaitingBehindWrite {
  readonly kind: 'error';
  readonly error: ErrorCode;
  readonly isLast: boolean;
}

/** The end of a session that only this server knows: nobody else is asked. */
export interface WaitingEnd extends WaitingBehindWrite {
  readonly kind: 'end';
}

/** What is answered here, in its turn. */
export type WaitingAnswer = WaitingSync | WaitingRead | WaitingError | WaitingEnd;

/** What a client has asked and was not answered yet. */
export type ClientRequests = WaitingRequests<WaitingWrite, WaitingAnswer>;

/**
 * A read that may take several turns. Others are served in between and the tree goes on changing; the answer is of one
 * moment all the same.
 */
export interface LongRead {
  /** True when events wait for the answer, because it shows the tree as it was before them. */
  readonly holdsEvents: boolean;
  /** Bytes of the answer so far. */
  readonly heldBytes: number;
  /** Works for a slice, and tells the work meter. @returns true when it is done */
  goOn(): boolean;
  /** Answers, once it is done. */
  answer(client: Client, xid: number, receivedMs: number): void;
  /** It is not wanted any more: the client is gone. */
  drop(): void;
}
