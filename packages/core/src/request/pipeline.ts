import {
  ErrorCode,
  Fifo,
  isClientOp,
  type JuteReader,
  type MultiRequest,
  OpCode,
  type ReconfigRequest,
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
import { type PreparedDigest, UNKNOWN_DIGEST } from '../tree/digest.ts';
import type { WatchManager } from '../watch/watch-manager.ts';
import type { Committed } from '../zab/committed.ts';
import type { SoloBroadcast } from '../zab/solo.ts';
import type { Client, WaitingError, WaitingRead, WaitingSync, WaitingWrite } from './client.ts';
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

/**
 * A txn on its way to the log. One object from the proposal to the reply: a client's is at the same time its waiting
 * request; the server's own have no client.
 */
class Proposal implements WaitingWrite {
  readonly kind = 'write';
  readonly header: TxnHeader;
  readonly txn: Txn;
  readonly client: Client | null;
  readonly xid: number;
  readonly op: number;
  readonly receivedMs: number;
  /** What prepare has computed already. */
  readonly digest: PreparedDigest;

  constructor(
    header: TxnHeader,
    txn: Txn,
    client: Client | null,
    op: number,
    receivedMs: number,
    digest: PreparedDigest,
  ) {
    this.header = header;
    this.txn = txn;
    this.client = client;
    this.xid = header.cxid;
    this.op = op;
    this.receivedMs = receivedMs;
    this.digest = digest;
  }
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
  /** Proposals that are not applied yet, in zxid order. */
  readonly #inFlight: Fifo<Proposal> = new Fifo();
  /** Clients with a `sync` that waits, in the order of its zxid. */
  readonly #syncing: { readonly client: Client; readonly zxid: number }[] = [];
  readonly #clientOf = new Map<bigint, Client>();
  /** Who asked for the sessions that are being created. */
  readonly #creators = new Map<bigint, SessionClient>();

  constructor(parts: PipelineParts) {
    this.#parts = parts;
  }

  /** Proposals that are not applied yet. */
  get inFlightCount(): number {
    return this.#inFlight.length;
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
      case OpCode.reconfig: {
        const header = this.#makeHeader(session.id, xid, wallMs);
        this.#proposeFor(client, header, this.#prepare(request, header, client), op, nowMs);
        return;
      }
      case OpCode.closeSession: {
        const header = this.#makeHeader(session.id, xid, wallMs);
        this.#parts.sessions.setClosing(session);
        this.#proposeFor(client, header, this.#parts.preparer.prepareCloseSession(session.id, header.zxid), op, nowMs);
        return;
      }
      case OpCode.ping:
        client.beginReply(xid, this.lastApplied, ErrorCode.ok);
        client.endReply(nowMs);
        return;
      case OpCode.sync: {
        const zxid = this.#parts.broadcast.lastProposed;
        this.#answerInTurn(client, { kind: 'sync', xid, receivedMs: nowMs, zxid, path: request.path });
        return;
      }
      default:
        if (client.waiting.length === 0) this.#parts.reads.answer(client, xid, request, nowMs);
        else client.waiting.push({ kind: 'read', xid, receivedMs: nowMs, request });
    }
  }

  /** Proposes a new session for a client; `onSessionCreated` tells it when the session exists. */
  createSession(client: SessionClient, timeoutMs: number, nowMs: number, wallMs: number): void {
    const { sessions, sessionIds } = this.#parts;
    const id = sessionIds.next((taken) => sessions.get(taken) !== undefined);
    sessions.add(new Session(id, timeoutMs), nowMs);
    this.#creators.set(id, client);
    this.#proposeOwn(this.#makeHeader(id, 0, wallMs), { type: OpCode.createSession, timeoutMs });
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
      this.endSession(session.id, wallMs);
    }
  }

  /** Deletes a session's ephemerals and the session, known or not. */
  endSession(sessionId: bigint, wallMs: number): void {
    const header = this.#makeHeader(sessionId, 0, wallMs);
    this.#proposeOwn(header, this.#parts.preparer.prepareCloseSession(sessionId, header.zxid));
  }

  /** Deletes a container or TTL znode whose time has come, if that is still so. */
  collect(path: string, wallMs: number): void {
    const header = this.#makeHeader(0n, 0, wallMs);
    this.#proposeOwn(header, this.#parts.preparer.prepareDeleteContainer(path, header.zxid));
  }

  /** Steps 9–11: applies everything that is committed now, tells the watchers, answers those who wait. */
  onCommitted(committed: Committed<Zxid>, nowMs: number): void {
    for (let oldest = this.#inFlight.peek(); oldest !== undefined; oldest = this.#inFlight.peek()) {
      if (oldest.header.zxid > committed) break;
      this.#inFlight.shift();
      this.#apply(oldest, nowMs);
    }
    this.#parts.pending.onApplied(committed);
    while (this.#syncing.length > 0 && this.#syncing[0]!.zxid <= committed) {
      this.answerWaiting(this.#syncing.shift()!.client);
    }
  }

  /** Answers a client's oldest waiting requests, as far as they no longer have to wait. */
  answerWaiting(client: Client): void {
    while (client.waiting.length > 0 && client.isOpen) {
      const oldest = client.waiting[0]!;
      if (oldest.kind === 'write') return;
      if (oldest.kind === 'sync' && oldest.zxid > this.#parts.broadcast.lastCommitted) return;
      if (oldest.kind === 'read' && client.isOutputFull) return;
      client.waiting.shift();
      this.#answer(client, oldest);
    }
  }

  /**
   * The client's oldest write is about to be applied. What it asked before is answered now, so that it does not see the
   * write: a sync behind somebody else's write that was committed together with this one, and reads that wait because
   * the client is slow to take its replies. The write waits for nobody, so a client that has asked for more than may be
   * queued is disconnected.
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
    if (waiting.kind === 'sync' && waiting.zxid > this.#parts.broadcast.lastCommitted) {
      this.#syncing.push({ client, zxid: waiting.zxid });
    }
    if (client.waiting.length === 1) this.answerWaiting(client);
  }

  #makeHeader(sessionId: bigint, cxid: number, wallMs: number): TxnHeader {
    return { sessionId, cxid, zxid: this.#parts.broadcast.nextZxid(), time: wallMs };
  }

  #prepare(request: WriteRequest | MultiRequest | ReconfigRequest, header: TxnHeader, client: Client): Txn {
    switch (request.op) {
      case OpCode.multi:
        return this.#parts.preparer.prepareMulti(request, header, client.identities);
      case OpCode.reconfig:
        return { type: OpCode.error, error: ErrorCode.reconfigDisabled };
      default:
        return this.#parts.preparer.prepareWrite(request, header, client.identities);
    }
  }

  #proposeFor(client: Client, header: TxnHeader, txn: Txn, op: number, nowMs: number): void {
    const proposal = new Proposal(header, txn, client, op, nowMs, this.#parts.preparer.digestOf(txn));
    client.waiting.push(proposal);
    this.#propose(proposal);
  }

  #proposeOwn(header: TxnHeader, txn: Txn): void {
    this.#propose(new Proposal(header, txn, null, txn.type, 0, UNKNOWN_DIGEST));
  }

  #propose(proposal: Proposal): void {
    this.#inFlight.push(proposal);
    const { header, txn } = proposal;
    // An error txn has no digest, as in Apache's logs.
    const digest = txn.type === OpCode.error ? null : this.#parts.pending.treeDigest();
    this.#parts.broadcast.propose(header, txn, digest);
  }

  #apply(proposal: Proposal, nowMs: number): void {
    const { header, txn, client } = proposal;
    if (client?.isOpen && client.waiting[0] !== proposal) this.#answerBeforeWrite(client);
    const result = this.#parts.database.apply(header, txn, this.#parts.watches, proposal.digest);
    const mayFail = txn.type === OpCode.error || txn.type === OpCode.multi;
    assert(mayFail || result.error === ErrorCode.ok, 'a txn that was prepared can be applied');
    if (client?.isOpen) {
      assert(client.waiting[0] === proposal, 'writes of a session are committed in the order of its requests');
      client.waiting.shift();
      const error = replyErrorOf(txn);
      const writer = client.beginReply(proposal.xid, header.zxid, error);
      if (error === ErrorCode.ok) writeReplyRecord(writer, proposal.op, txn, result, this.#parts.database.tree);
      client.endReply(proposal.receivedMs);
      if (client.waiting.length > 0) this.answerWaiting(client);
    }
    if (txn.type === OpCode.createSession) this.#onSessionCreated(header.sessionId, nowMs);
    else if (txn.type === OpCode.closeSession) this.#onSessionClosed(header.sessionId);
  }

  #onSessionCreated(sessionId: bigint, nowMs: number): void {
    const session = this.#parts.sessions.get(sessionId);
    const creator = this.#creators.get(sessionId);
    this.#creators.delete(sessionId);
    if (session === undefined || creator === undefined || !creator.isOpen) return;
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
