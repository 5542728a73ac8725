import {
  ErrorCode,
  isClientOp,
  type JuteReader,
  OpCode,
  readRequest,
  type Txn,
  type TxnHeader,
  ZXID_NONE,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../assert.ts';
import type { Trace } from '../ports.ts';
import { SUPERSEDED } from '../session/revalidations.ts';
import type { Session } from '../session/session.ts';
import type { SessionTable } from '../session/session-table.ts';
import type { ApplyResult } from '../tree/apply-result.ts';
import type { Database } from '../tree/database.ts';
import type { PreparedDigest } from '../tree/digest.ts';
import type { WatchManager } from '../watch/watch-manager.ts';
import type { Client, SessionClient, WaitingError, WaitingRead, WaitingSync, WaitingWrite } from './client.ts';
import type { Reads } from './read.ts';
import type { WritePath } from './write-path.ts';
import { replyErrorOf, writeReplyRecord } from './write-reply.ts';

/** Hears of every txn that is applied because it is committed, in order, before anybody is answered; the digest is the tree's. */
export type OnApplied = (zxid: Zxid, treeDigest: bigint) => void;

/** What the pipeline works on and with. */
export interface PipelineParts {
  readonly database: Database;
  readonly reads: Reads;
  readonly watches: WatchManager;
  readonly sessions: SessionTable;
  readonly writes: WritePath;
  readonly trace: Trace;
  readonly onApplied: OnApplied | null;
  /** Tickets up to this one are answered from the start. */
  readonly lastSynced: number;
}

/**
 * A request's journey through a server of any kind, and the promises about its order.
 *
 *     receive ──► read? ──────────────────────────────────────────────► reply
 *        │
 *        └──► write: WritePath ──► … a quorum … ──► Committed ──► apply ──► reply
 *
 * 1. Replies of a session leave in the order of its requests (pings apart, which are answered at once).
 * 2. A read waits behind its own session's writes in flight, and behind nobody else's.
 * 3. A watch event reaches a client before any reply that could show it the new state: events are written while the
 *    txn is applied, replies afterwards, both to one stream.
 * 4. A request that fails in *prepare* takes a zxid and is logged like any other.
 * 5. `sync` is answered once everything committed before it is applied.
 * 6. A write is answered only when its txn is applied, and that is done from a `Committed` watermark.
 */
export class Pipeline {
  readonly #parts: PipelineParts;
  /** Clients with a `sync` that waits, in the order of the tickets. */
  readonly #syncing: { readonly client: Client; readonly ticket: number }[] = [];
  #lastSynced: number;
  readonly #clientOf = new Map<bigint, Client>();
  /** Who asked for the sessions that are being created. */
  readonly #creators = new Map<bigint, SessionClient>();

  constructor(parts: PipelineParts) {
    this.#parts = parts;
    this.#lastSynced = parts.lastSynced;
  }

  /** Writes on their way: they are not applied yet. */
  get inFlightCount(): number {
    return this.#parts.writes.inFlightCount;
  }

  get lastApplied(): Zxid {
    return this.#parts.database.lastZxid;
  }

  /** Steps 2–4 of the journey: decodes a request of a client that has a session, and answers it or sends it on. */
  receive(client: Client, xid: number, op: number, reader: JuteReader, nowMs: number, wallMs: number): void {
    const { session } = client;
    // A session that has been closed or has expired gets no answers; its connection is about to be closed.
    if (session === null || session.isClosing) return;
    this.#parts.sessions.touch(session, nowMs);
    if (!isClientOp(op)) {
      this.#answerInTurn(client, {
        kind: 'error',
        xid,
        receivedMs: nowMs,
        error: ErrorCode.unimplemented,
        isLast: true,
      });
      return;
    }
    const recordAt = reader.position;
    const request = readRequest(op, reader);
    if (request === null) {
      const error = ErrorCode.marshallingError;
      this.#answerInTurn(client, { kind: 'error', xid, receivedMs: nowMs, error, isLast: false });
      return;
    }
    switch (request.op) {
      case OpCode.setData:
      case OpCode.create:
      case OpCode.create2:
      case OpCode.createContainer:
      case OpCode.createTTL:
      case OpCode.delete:
      case OpCode.setACL:
      case OpCode.multi:
      case OpCode.reconfig:
        this.#parts.writes.write(client, session, xid, request, reader, recordAt, nowMs, wallMs);
        return;
      case OpCode.closeSession:
        this.#parts.writes.closeSession(client, session, xid, nowMs, wallMs);
        return;
      case OpCode.ping:
        client.beginReply(xid, this.lastApplied, ErrorCode.ok);
        client.endReply(nowMs);
        return;
      case OpCode.sync: {
        const ticket = this.#parts.writes.sync(session, xid, reader, recordAt);
        this.#answerInTurn(client, { kind: 'sync', xid, receivedMs: nowMs, ticket, path: request.path });
        return;
      }
      default:
        if (client.waiting.length === 0) this.#parts.reads.answer(client, xid, request, nowMs);
        else client.waiting.push({ kind: 'read', xid, receivedMs: nowMs, request });
    }
  }

  /** Asks for a new session; `onSessionCreated` tells the client when it exists. */
  createSession(client: SessionClient, timeoutMs: number, nowMs: number, wallMs: number): void {
    this.#creators.set(this.#parts.writes.createSession(timeoutMs, nowMs, wallMs), client);
  }

  /**
   * The client speaks for this session from now on; whoever did before is closed. Only now: Apache closes the other
   * connection before it looks at the password, so that whoever guesses an id cuts its client off.
   */
  attach(client: Client, session: Session): void {
    this.#clientOf.get(session.id)?.closeAfterReplies(SUPERSEDED);
    this.#clientOf.set(session.id, client);
  }

  clientOf(sessionId: bigint): Client | undefined {
    return this.#clientOf.get(sessionId);
  }

  /** The client's connection is gone: it gets no replies and no events. Its session lives on until it expires. */
  detach(client: Client): void {
    const { session } = client;
    if (session !== null && this.#clientOf.get(session.id) === client) this.#clientOf.delete(session.id);
    client.waiting.length = 0;
    this.#parts.watches.removeWatcher(client);
  }

  /**
   * Steps 9–11: applies a committed txn, tells the watchers, and answers who waits for it. Called in the order of the
   * zxids.
   *
   * @param write what the txn answers: a write of this server's, or null for one of another server's
   * @param digest as in `DataTree.apply`
   */
  apply(header: TxnHeader, txn: Txn, write: WaitingWrite | null, digest: PreparedDigest, nowMs: number): ApplyResult {
    const client = write === null ? null : write.client;
    if (client?.isOpen && client.waiting[0] !== write) this.#answerBeforeWrite(client);
    const { database, watches, onApplied } = this.#parts;
    const result = database.apply(header, txn, watches, digest);
    if (onApplied !== null) onApplied(header.zxid, database.tree.treeDigest());
    if (write !== null && client?.isOpen) this.#answerWrite(client, write, header, txn, result);
    if (txn.type === OpCode.createSession) this.#onSessionCreated(header.sessionId, nowMs);
    else if (txn.type === OpCode.closeSession) this.#onSessionClosed(header.sessionId);
    else if (write !== null && write.op === OpCode.createSession) this.#onSessionRefused(header.sessionId);
    return result;
  }

  /** Every sync up to this ticket is answered; everything committed before them is applied. */
  onSynced(ticket: number): void {
    this.#lastSynced = ticket;
    while (this.#syncing.length > 0 && this.#syncing[0]!.ticket <= ticket) {
      this.answerWaiting(this.#syncing.shift()!.client);
    }
  }

  /** The server's role is over: nobody is answered any more. The clients' connections are to be closed. */
  drop(): void {
    for (const client of [...this.#clientOf.values()]) this.detach(client);
    this.#syncing.length = 0;
    this.#creators.clear();
  }

  /** Answers a client's oldest waiting requests, as far as they no longer have to wait. */
  answerWaiting(client: Client): void {
    while (client.waiting.length > 0 && client.isOpen) {
      const oldest = client.waiting[0]!;
      if (oldest.kind === 'write') return;
      if (oldest.kind === 'sync' && oldest.ticket > this.#lastSynced) return;
      if (oldest.kind === 'read' && client.isOutputFull) return;
      client.waiting.shift();
      this.#answer(client, oldest);
    }
  }

  /**
   * The client's oldest write is about to be applied. What it asked before is answered now, so that it does not see the
   * write: a sync whose ticket is still open, and reads that wait because the client is slow to take its replies. The
   * write waits for nobody, so a client that has asked for more than may be queued is disconnected.
   *
   * The sync loses nothing by it: a quorum has accepted the write, which reached who proposes after the sync, so that
   * server led when the sync came; and all that was committed before the write is applied.
   */
  #answerBeforeWrite(client: Client): void {
    while (client.waiting.length > 0 && client.isOpen) {
      const oldest = client.waiting[0]!;
      if (oldest.kind === 'write') return;
      client.waiting.shift();
      this.#answer(client, oldest);
      if (client.hasTooMuchOutput) client.close('it does not read: too many bytes of replies are queued');
    }
  }

  #answer(client: Client, waiting: WaitingSync | WaitingRead | WaitingError): void {
    switch (waiting.kind) {
      case 'sync':
        client.beginReply(waiting.xid, this.lastApplied, ErrorCode.ok).ustring(waiting.path);
        client.endReply(waiting.receivedMs);
        return;
      case 'read':
        this.#parts.reads.answer(client, waiting.xid, waiting.request, waiting.receivedMs);
        return;
      case 'error':
        client.beginReply(waiting.xid, waiting.isLast ? ZXID_NONE : this.lastApplied, waiting.error);
        client.endReply(waiting.receivedMs);
        if (waiting.isLast) client.closeAfterReplies('it sent an operation that clients may not send');
    }
  }

  #answerInTurn(client: Client, waiting: WaitingSync | WaitingError): void {
    client.waiting.push(waiting);
    if (waiting.kind === 'sync' && waiting.ticket > this.#lastSynced) {
      this.#syncing.push({ client, ticket: waiting.ticket });
    }
    if (client.waiting.length === 1) this.answerWaiting(client);
  }

  #answerWrite(client: Client, write: WaitingWrite, header: TxnHeader, txn: Txn, result: ApplyResult): void {
    assert(client.waiting[0] === write, 'writes of a session are committed in the order of its requests');
    client.waiting.shift();
    const error = replyErrorOf(txn);
    const writer = client.beginReply(write.xid, header.zxid, error);
    if (error === ErrorCode.ok) writeReplyRecord(writer, write, txn, result, this.#parts.database.tree);
    client.endReply(write.receivedMs);
    // Nothing more is accepted from a client that wants to end its session, also when somebody else has or will.
    if (write.op === OpCode.closeSession && error !== ErrorCode.ok) client.closeAfterReplies('its session is closed');
    if (client.waiting.length > 0) this.answerWaiting(client);
  }

  #onSessionCreated(sessionId: bigint, nowMs: number): void {
    const session = this.#parts.sessions.get(sessionId);
    const creator = this.#creators.get(sessionId);
    this.#creators.delete(sessionId);
    if (session === undefined || creator === undefined || !creator.isOpen) return;
    this.#parts.sessions.touch(session, nowMs);
    creator.onSessionCreated(session);
  }

  /** The server that proposes does not want the session. */
  #onSessionRefused(sessionId: bigint): void {
    this.#creators.get(sessionId)?.close('its session has been refused');
    this.#creators.delete(sessionId);
  }

  #onSessionClosed(sessionId: bigint): void {
    const session = this.#parts.sessions.get(sessionId);
    if (session !== undefined) this.#parts.sessions.remove(session);
    this.#parts.trace.emit({ kind: 'session-closed', sessionId });
    this.#clientOf.get(sessionId)?.closeAfterReplies('its session is closed');
  }
}
