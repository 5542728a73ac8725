import {
  ErrorCode,
  isClientOp,
  type JuteReader,
  type MultiRequest,
  OpCode,
  type Request,
  readRequest,
  type Txn,
  type TxnHeader,
  type WriteRequest,
  ZXID_NONE,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../assert.ts';
import type { Trace } from '../ports.ts';
import { Session } from '../session/session.ts';
import type { SessionIds } from '../session/session-ids.ts';
import type { SessionTracker } from '../session/session-tracker.ts';
import type { Database } from '../tree/database.ts';
import type { WatchManager } from '../watch/watch-manager.ts';
import type { Committed } from '../zab/committed.ts';
import type { SoloBroadcast } from '../zab/solo.ts';
import type { Client, RequestContext, WaitingRequest } from './client.ts';
import type { PendingTree } from './pending.ts';
import type { Preparer } from './prepare.ts';
import type { Reads } from './read.ts';
import { replyErrorOf, writeReplyRecord } from './write-reply.ts';

/** What the pipeline works on and with. */
export interface PipelineParts {
  readonly database: Database;
  readonly pending: PendingTree;
  readonly preparer: Preparer;
  readonly reads: Reads;
  readonly watches: WatchManager;
  readonly sessions: SessionTracker;
  readonly sessionIds: SessionIds;
  readonly broadcast: SoloBroadcast;
  readonly trace: Trace;
}

/** What the pipeline asks of the client of a session that begins or ends. */
export interface SessionClient extends Client {
  onSessionCreated(session: Session): void;
}

/** A txn on its way to the log, and the client that waits for it; the server's own requests have none. */
interface Proposal {
  readonly header: TxnHeader;
  readonly txn: Txn;
  readonly waiting: (WaitingRequest & { readonly kind: 'write' }) | null;
  /** For createSession: who gets the session. */
  readonly creator: SessionClient | null;
}

/**
 * A request's journey through the server, and the promises about its order.
 *
 *     receive ──► read? ─────────────────────────────────────────────► reply
 *        │
 *        └──► write: prepare ──► propose ──► log ──► commit ──► apply ──► reply
 *
 * 1. Replies of a session leave in the order of its requests (pings apart, which are answered at once).
 * 2. A read waits behind its own session's writes in flight, and behind nobody else's.
 * 3. A watch event reaches a client before any reply that could show it the new state: events are written while the
 *    txn is applied, replies afterwards, both to one stream.
 * 4. A request that fails in *prepare* takes a zxid and is logged like any other.
 * 5. `sync` is answered once everything proposed before it is committed.
 * 6. A write is answered only from a `Committed` watermark.
 */
export class Pipeline {
  readonly #parts: PipelineParts;
  /** Proposals in flight, in zxid order, from `#head` on. */
  #inFlight: Proposal[] = [];
  #head = 0;
  /** Clients with a `sync` that waits, in the order of its zxid. */
  readonly #syncing: { readonly client: Client; readonly zxid: number }[] = [];
  readonly #clientOf = new Map<bigint, Client>();

  constructor(parts: PipelineParts) {
    this.#parts = parts;
  }

  /** Proposals that are not applied yet. */
  get inFlightCount(): number {
    return this.#inFlight.length - this.#head;
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
    const context: RequestContext = { client, xid, op, receivedMs: nowMs };
    if (!isClientOp(op)) {
      this.#answerInTurn({ ...context, kind: 'error', error: ErrorCode.unimplemented, isLast: true });
      return;
    }
    const request = readRequest(op, reader);
    if (request === null) {
      this.#answerInTurn({ ...context, kind: 'error', error: ErrorCode.marshallingError, isLast: false });
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
        this.#proposeRequest(context, request, session, wallMs);
        return;
      case OpCode.reconfig:
        this.#propose(context, session.id, { type: OpCode.error, error: ErrorCode.reconfigDisabled }, wallMs);
        return;
      case OpCode.closeSession:
        this.#parts.sessions.setClosing(session);
        this.#proposeClose(session, context, wallMs);
        return;
      case OpCode.ping:
        client.beginReply(xid, this.lastApplied, ErrorCode.ok);
        client.endReply(context);
        return;
      case OpCode.sync:
        this.#answerInTurn({ ...context, kind: 'sync', zxid: this.#parts.broadcast.lastProposed, path: request.path });
        return;
      default:
        this.#read(request, context);
    }
  }

  /** Proposes a new session for a client; `onSessionCreated` tells it when the session exists. */
  createSession(client: SessionClient, timeoutMs: number, nowMs: number, wallMs: number): void {
    const { sessions, sessionIds, broadcast } = this.#parts;
    const session = new Session(
      sessionIds.next((id) => sessions.get(id) !== undefined),
      timeoutMs,
    );
    sessions.add(session, nowMs);
    const header = { sessionId: session.id, cxid: 0, zxid: broadcast.nextZxid(), time: wallMs };
    this.#send({ header, txn: { type: OpCode.createSession, timeoutMs }, waiting: null, creator: client });
  }

  /** The client speaks for this session from now on. */
  attach(client: Client, session: Session): void {
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

  /** Ends sessions that nothing was heard of. */
  expire(sessions: readonly Session[], wallMs: number): void {
    for (const session of sessions) {
      if (session.isClosing) continue;
      this.#parts.sessions.setClosing(session);
      this.#parts.trace.emit({ kind: 'session-expired', sessionId: session.id, timeoutMs: session.timeoutMs });
      this.#proposeClose(session, null, wallMs);
    }
  }

  /** Deletes the ephemerals of a session that nobody knows, by the txn that would have ended it. */
  endUnknownSession(sessionId: bigint, wallMs: number): void {
    const { preparer, broadcast } = this.#parts;
    const zxid = broadcast.nextZxid();
    const txn = preparer.prepareCloseSession(sessionId, zxid);
    this.#send({ header: { sessionId, cxid: 0, zxid, time: wallMs }, txn, waiting: null, creator: null });
  }

  /** Deletes a container or TTL znode whose time has come, if that is still so. */
  collect(path: string, wallMs: number): void {
    const { preparer, broadcast } = this.#parts;
    const zxid = broadcast.nextZxid();
    const txn = preparer.prepareDeleteContainer(path, zxid);
    this.#send({ header: { sessionId: 0n, cxid: 0, zxid, time: wallMs }, txn, waiting: null, creator: null });
  }

  /** Steps 9–11: applies everything that is committed now, tells the watchers, answers those who wait. */
  onCommitted(committed: Committed<Zxid>, nowMs: number): void {
    while (this.#head < this.#inFlight.length) {
      const proposal = this.#inFlight[this.#head]!;
      if (proposal.header.zxid > committed) break;
      this.#head++;
      this.#apply(proposal, nowMs);
    }
    this.#parts.pending.onApplied(committed);
    if (this.#head === this.#inFlight.length) {
      this.#inFlight = [];
      this.#head = 0;
    } else if (this.#head > 4096) {
      this.#inFlight = this.#inFlight.slice(this.#head);
      this.#head = 0;
    }
    while (this.#syncing.length > 0 && this.#syncing[0]!.zxid <= committed) {
      this.answerWaiting(this.#syncing.shift()!.client);
    }
  }

  /** Answers a client's oldest waiting requests, as far as they no longer have to wait. */
  answerWaiting(client: Client): void {
    const { waiting } = client;
    while (waiting.length > 0 && client.isOpen) {
      const oldest = waiting[0]!;
      switch (oldest.kind) {
        case 'write':
          return;
        case 'sync':
          if (oldest.zxid > this.#parts.broadcast.lastCommitted) return;
          waiting.shift();
          client.beginReply(oldest.xid, this.lastApplied, ErrorCode.ok).ustring(oldest.path);
          client.endReply(oldest);
          break;
        case 'read':
          if (client.isOutputFull) return;
          waiting.shift();
          this.#parts.reads.answer(oldest.request, oldest);
          break;
        case 'error':
          waiting.shift();
          client.beginReply(oldest.xid, oldest.isLast ? ZXID_NONE : this.lastApplied, oldest.error);
          client.endReply(oldest);
          if (oldest.isLast) client.closeAfterReplies(`operation ${oldest.op} is not one that clients may send`);
          break;
      }
    }
  }

  #read(request: Request, context: RequestContext): void {
    if (context.client.waiting.length === 0) this.#parts.reads.answer(request, context);
    else context.client.waiting.push({ ...context, kind: 'read', request });
  }

  #answerInTurn(waiting: WaitingRequest): void {
    const { client } = waiting;
    client.waiting.push(waiting);
    if (waiting.kind === 'sync' && waiting.zxid > this.#parts.broadcast.lastCommitted) {
      this.#syncing.push({ client, zxid: waiting.zxid });
    }
    if (client.waiting.length === 1) this.answerWaiting(client);
  }

  #proposeRequest(
    context: RequestContext,
    request: WriteRequest | MultiRequest,
    session: Session,
    wallMs: number,
  ): void {
    const { preparer, broadcast } = this.#parts;
    const { identities } = context.client;
    const prepareContext = { sessionId: session.id, identities, zxid: broadcast.nextZxid(), time: wallMs };
    const txn =
      request.op === OpCode.multi
        ? preparer.prepareMulti(request, prepareContext)
        : preparer.prepareWrite(request, prepareContext);
    this.#propose(context, session.id, txn, wallMs);
  }

  #proposeClose(session: Session, context: RequestContext | null, wallMs: number): void {
    const zxid = this.#parts.broadcast.nextZxid();
    this.#propose(context, session.id, this.#parts.preparer.prepareCloseSession(session.id, zxid), wallMs);
  }

  #propose(context: RequestContext | null, sessionId: bigint, txn: Txn, wallMs: number): void {
    const zxid = this.#parts.broadcast.nextZxid();
    const header = { sessionId, cxid: context === null ? 0 : context.xid, zxid, time: wallMs };
    if (context === null) {
      this.#send({ header, txn, waiting: null, creator: null });
      return;
    }
    const { client, xid, op, receivedMs } = context;
    const waiting = { client, xid, op, receivedMs, kind: 'write', zxid } as const;
    client.waiting.push(waiting);
    this.#send({ header, txn, waiting, creator: null });
  }

  #send(proposal: Proposal): void {
    this.#inFlight.push(proposal);
    this.#parts.broadcast.propose(proposal.header, proposal.txn, this.#parts.pending.treeDigest());
  }

  #apply(proposal: Proposal, nowMs: number): void {
    const { header, txn, waiting } = proposal;
    const result = this.#parts.database.apply(header, txn, this.#parts.watches);
    const mayFail = txn.type === OpCode.error || txn.type === OpCode.multi;
    assert(mayFail || result.error === ErrorCode.ok, 'a txn that was prepared can be applied');
    if (waiting?.client.isOpen) {
      const { client } = waiting;
      assert(client.waiting[0] === waiting, 'writes of a session are committed in the order of its requests');
      client.waiting.shift();
      const error = replyErrorOf(txn);
      const writer = client.beginReply(waiting.xid, header.zxid, error);
      if (error === ErrorCode.ok) writeReplyRecord(writer, waiting.op, txn, result, this.#parts.database.tree);
      client.endReply(waiting);
      if (client.waiting.length > 0) this.answerWaiting(client);
    }
    if (txn.type === OpCode.createSession) this.#onSessionCreated(header.sessionId, proposal.creator, nowMs);
    else if (txn.type === OpCode.closeSession) this.#onSessionClosed(header.sessionId);
  }

  #onSessionCreated(sessionId: bigint, creator: SessionClient | null, nowMs: number): void {
    const session = this.#parts.sessions.get(sessionId);
    if (session === undefined || creator === null || !creator.isOpen) return;
    this.#parts.sessions.touch(session, nowMs);
    creator.onSessionCreated(session);
  }

  #onSessionClosed(sessionId: bigint): void {
    const session = this.#parts.sessions.get(sessionId);
    if (session !== undefined) this.#parts.sessions.remove(session);
    this.#parts.trace.emit({ kind: 'session-closed', sessionId });
    this.#clientOf.get(sessionId)?.closeAfterReplies('its session is closed');
  }
}
