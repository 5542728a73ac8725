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
  /** Authenticated identities, including `ip`. */
  readonly identities: readonly Identity[];
  /** False once the connection is closing or closed; nothing more is sent. */
  readonly isOpen: boolean;
  /** Unanswered requests, maintained by the pipeline. */
  readonly waiting: ClientRequests;
  readonly output: ReplyOutput;
  /** True when no further request should be answered for now: replies are queued, or its share of the turn is used. */
  readonly mustWait: boolean;
  /** True when its share of this turn is used. */
  readonly isShareUsed: boolean;
  /** True when other clients have used up this turn: a long read of this client begins in one of the next turns. */
  readonly isTurnSpent: boolean;
  /** Asks for `Pipeline.answerWaiting` to be called for this client in one of the next turns. */
  yieldTurn(): void;
  /** Charges the client for cost that the work meter does not see; too much makes it wait for the next turn. */
  charge(units: number): void;
  /** Closes at once; queued output is lost. */
  close(reason: string): void;
  /** Closes once all output is sent. */
  closeAfterReplies(reason: string): void;
}

/** Where the replies to a client are written. */
export interface ReplyOutput {
  /** True when the client has left so much output unread that it must be disconnected. */
  readonly isTooMuch: boolean;
  /** Starts a reply. Its record is written to the returned writer; `endReply` completes it. */
  beginReply(xid: number, zxid: number, error: ErrorCode): JuteWriter;
  /** @param receivedMs when the request was received, in monotonic milliseconds, for the latency */
  endReply(receivedMs: number): void;
  /** Sends a reply whose record is already encoded. */
  reply(xid: number, zxid: number, record: JuteChunks, receivedMs: number): void;
  /** Holds watch events back until after the next reply. */
  holdEvents(): void;
}

/** The connection that asked for a new session. */
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

/** Waits behind a write of its own session. */
interface WaitingBehindWrite extends Waiting {
  /** Approximate memory use. */
  readonly bytes: number;
}

/** Being proposed; answered when its txn is committed and applied. */
export interface WaitingWrite extends Waiting {
  readonly kind: 'write';
  readonly op: number;
  /** Size of its request, or of its txn once there is one. */
  readonly bytes: number;
  /**
   * The op codes of the parts of a multi that was forwarded to the leader, because its txn does not distinguish create2
   * from create. Otherwise null.
   */
  readonly partOps: readonly number[] | null;
  /** null: requested by a server or by a client of another server; nothing is answered here. */
  readonly client: Client | null;
}

/** Answered once its ticket is: everything that was committed before the request is then applied. */
export interface WaitingSync extends WaitingBehindWrite {
  readonly kind: 'sync';
  readonly ticket: number;
  /** The last committed zxid when it was received: applied before the answer. */
  readonly after: Zxid;
  readonly path: string;
}

/** Executed once it is the oldest request; may take several turns. */
export interface WaitingRead extends WaitingBehindWrite {
  readonly kind: 'read';
  readonly request: ReadRequest;
  /** It takes several turns, and nothing more is accepted behind it. Counted by `WaitingRequests`. */
  isLong: boolean;
  /** Its execution; null until it has begun. */
  long: LongRead | null;
}

/** Answered with an error code once it is the oldest request; `isLast` closes the connection then. */
export interface WaitingError extends WaitingBehindWrite {
  readonly kind: 'error';
  readonly error: ErrorCode;
  readonly isLast: boolean;
}

/** A closeSession of a local session, which needs no txn. */
export interface WaitingEnd extends WaitingBehindWrite {
  readonly kind: 'end';
}

/** A request that this server answers by itself, in order. */
export type WaitingAnswer = WaitingSync | WaitingRead | WaitingError | WaitingEnd;

/** The unanswered requests of a client. */
export type ClientRequests = WaitingRequests<WaitingWrite, WaitingAnswer>;

/**
 * A read that may take several turns. Other clients are served in between and the tree keeps changing; the reply is
 * nevertheless a consistent snapshot.
 */
export interface LongRead {
  /** True when watch events must wait for the reply, because it shows the tree before their changes. */
  readonly holdsEvents: boolean;
  /** Bytes of the reply so far. */
  readonly heldBytes: number;
  /** Executes one slice and charges the work meter. @returns true when it is done */
  advance(): boolean;
  /** Sends the reply, once it is done. */
  answer(client: Client, xid: number, receivedMs: number): void;
  /** Cancels it: the client is gone. */
  drop(): void;
}
