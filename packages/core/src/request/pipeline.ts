import {
  ErrorCode,
  isClientOp,
  type JuteReader,
  OpCode,
  type Request,
  readRequest,
  SpecialXid,
  type Txn,
  type TxnHeader,
  type Zxid,
} from '@meerkat/protocol';
import type { Meters } from '../base/meters/meters.ts';
import type { Trace } from '../base/ports.ts';
import type { Received } from '../base/turn.ts';
import type { LocalSessions } from '../session/local-sessions.ts';
import { SUPERSEDED } from '../session/revalidations.ts';
import type { Session } from '../session/session.ts';
import type { SessionTable } from '../session/session-table.ts';
import type { ApplyResult } from '../tree/apply-result.ts';
import type { Database } from '../tree/database.ts';
import type { TxnSteps } from '../tree/txn-steps.ts';
import type { WatchManager } from '../watch/watch-manager.ts';
import type { Committed } from '../zab/committed.ts';
import { ApplyPace, type CommittedTxn, type CommittedTxns, type PaceLimits, type TxnHost } from './apply-pace.ts';
import type { AuditTrail } from './audit-trail.ts';
import type { Client, SessionCreator, WaitingWrite } from './client.ts';
import type { Reads } from './read.ts';
import { RecentWriters } from './recent-writers.ts';
import type { RequestGate } from './request-gate.ts';
import type { ServingLimits } from './serving-limits.ts';
import { WaitingAnswers } from './waiting-answers.ts';
import type { WorkMeter } from './work-meter.ts';
import {
  addMulti,
  addWrite,
  costOf,
  ephemeralsMadeBy,
  excessOf,
  pauseFor,
  SHORT_END_EPHEMERALS,
  unitsOf,
} from './write-cost.ts';
import type { WritePath } from './write-path.ts';
import { replyErrorOf, writeReplyRecord } from './write-reply.ts';

/** Called for every txn when it is applied, in zxid order, before its client is answered. */
export type OnApplied = (zxid: Zxid, treeDigest: bigint) => void;

export interface PipelineParts {
  readonly database: Database;
  readonly reads: Reads;
  readonly watches: WatchManager;
  readonly sessions: SessionTable;
  readonly writes: WritePath;
  /** Default: no local sessions. */
  readonly local?: LocalSessions | null;
  /** Default: every request is admitted. */
  readonly gate?: RequestGate | null;
  /** Default: no limits. */
  readonly limits?: ServingLimits | null;
  readonly work: WorkMeter;
  readonly meters: Meters;
  readonly trace: Trace;
  readonly onApplied: OnApplied | null;
  readonly audit: AuditTrail | null;
  readonly committed: CommittedTxns;
  /** Default: suitable for a real server. */
  readonly pace?: PaceLimits;
  /** Tickets up to this one are answered from the start. */
  readonly lastSynced: number;
}

/**
 * The path of a request through a server in any role, with its ordering guarantees.
 *
 *     receive ──► read? ──────────────────────────────────────────────► reply
 *        │
 *        └──► write: WritePath ──► … a quorum … ──► Committed ──► apply ──► reply
 *
 * 1. Replies of a session are sent in the order of its requests (except pings, which are answered at once).
 * 2. A read waits for the writes in flight of its own session only.
 * 3. A watch event reaches a client before any reply that shows the new state: events are written while the txn is
 *    applied and replies afterwards, to the same stream.
 * 4. A request that fails in *prepare* takes a zxid and is logged like any other.
 * 5. `sync` is answered once everything committed before it is applied.
 * 6. A write is answered only once its txn is applied, and only txns up to a `Committed` watermark are applied.
 */
export class Pipeline implements TxnHost {
  readonly #parts: PipelineParts;
  readonly #gate: RequestGate | null;
  readonly #limits: ServingLimits | null;
  readonly #pace: ApplyPace;
  readonly #answers: WaitingAnswers;
  readonly #clientOf = new Map<bigint, Client>();
  /** The connections that wait for a new session. */
  readonly #creators = new Map<bigint, SessionCreator>();
  readonly #writers = new RecentWriters();
  /** `notifiedCount` of the watches before the current txn. */
  #notifiedBefore = 0;

  constructor(parts: PipelineParts) {
    this.#parts = parts;
    this.#gate = parts.gate ?? null;
    this.#limits = parts.limits ?? null;
    this.#pace = new ApplyPace(parts.committed, this, parts.work, parts.database.lastZxid, parts.pace);
    this.#answers = new WaitingAnswers({ ...parts, pace: this.#pace });
  }

  /** Writes that are not yet applied. */
  get inFlightCount(): number {
    return this.#parts.writes.inFlightCount + (this.#pace.isUnfinished ? 1 : 0);
  }

  /**
   * Unanswered requests: writes in flight and requests that wait behind them. Excludes requests that wait for their own
   * client to read its replies, or for its share of the next turn: one such client would stop reading from all others.
   */
  get outstandingCount(): number {
    return this.inFlightCount + this.#answers.owedCount;
  }

  get lastApplied(): Zxid {
    return this.#parts.database.lastZxid;
  }

  /** Steps 2–4: decodes a request of a client that has a session, and answers or forwards it. */
  receive(client: Client, xid: number, op: number, reader: JuteReader, nowMs: number, received: Received): void {
    const { session } = client;
    // A closed or expired session gets no answers; its connection is about to be closed.
    if (session === null || session.isClosing) return;
    if (!this.#parts.sessions.touch(session, nowMs)) {
      client.close(SILENT);
      return;
    }
    if (!isClientOp(op)) {
      const error = ErrorCode.unimplemented;
      this.#answers.add(client, {
        kind: 'error',
        xid,
        receivedMs: nowMs,
        bytes: WAITING_REQUEST_BYTES,
        error,
        isLast: true,
      });
      return;
    }
    const recordAt = reader.position;
    const request = readRequest(op, reader);
    if (request === null) {
      this.#refuse(client, xid, ErrorCode.marshallingError, nowMs);
      return;
    }
    // Forwarding sends the bytes of the record.
    reader.position = recordAt;
    if (this.#limits?.isTight === true && !this.#isWithinLimits(client, xid, request, nowMs, received)) return;
    if (this.#gate !== null && !this.#admit(client, session, xid, request, nowMs, received)) return;
    switch (request.op) {
      case OpCode.setData:
      case OpCode.create:
      case OpCode.create2:
      case OpCode.createContainer:
      case OpCode.createTTL:
      case OpCode.delete:
      case OpCode.setACL: {
        const units = addWrite(request, this.#parts.work, this.#parts.watches);
        this.#parts.writes.write(client, session, xid, request, received, reader);
        if (units > 0) client.waiting.addCost(costOf(units));
        return;
      }
      case OpCode.reconfig:
        this.#parts.writes.write(client, session, xid, request, received, reader);
        return;
      case OpCode.multi: {
        const units = addMulti(request.ops, this.#parts.work, this.#parts.watches);
        this.#parts.writes.write(client, session, xid, request, received, reader);
        if (units > 0) client.waiting.addCost(costOf(units));
        return;
      }
      case OpCode.closeSession:
        if (session.isLocal) this.#endLocal(client, session, xid, received);
        else this.#parts.writes.closeSession(client, session, xid, received);
        return;
      case OpCode.ping:
        client.output.beginReply(SpecialXid.ping, this.lastApplied, ErrorCode.ok);
        client.output.endReply(nowMs);
        this.#parts.meters.onReadAtOnce(OpCode.ping);
        return;
      case OpCode.sync: {
        const ticket = this.#parts.writes.sync(session, xid, reader);
        const { receivedMs } = received;
        const bytes = WAITING_REQUEST_BYTES + reader.end - recordAt;
        const after = this.#pace.committedZxid;
        this.#answers.add(client, { kind: 'sync', xid, receivedMs, bytes, ticket, after, path: request.path });
        return;
      }
      case OpCode.auth:
      case OpCode.sasl:
        // The connection handles these itself.
        this.#refuse(client, xid, ErrorCode.unimplemented, nowMs);
        return;
      default:
        this.#answers.read(client, xid, request, WAITING_REQUEST_BYTES + reader.end - recordAt, nowMs);
    }
  }

  /** Called instead of `receive` for a request that has waited too long: answers it with an error, in order. */
  refuse(client: Client, xid: number, error: ErrorCode, nowMs: number, { receivedMs }: Received): void {
    const { session } = client;
    if (session === null || session.isClosing) return;
    if (!this.#parts.sessions.touch(session, nowMs)) client.close(SILENT);
    else this.#refuse(client, xid, error, receivedMs);
  }

  #refuse(client: Client, xid: number, error: ErrorCode, receivedMs: number): void {
    this.#answers.add(client, { kind: 'error', xid, receivedMs, bytes: WAITING_REQUEST_BYTES, error, isLast: false });
  }

  /** @returns false for a request beyond a limit of this server, which is answered with an error, in order */
  #isWithinLimits(client: Client, xid: number, request: Request, nowMs: number, { receivedMs }: Received): boolean {
    const error = this.#limits!.refusalOf(request, nowMs);
    if (error === ErrorCode.ok) return true;
    this.#refuse(client, xid, error, receivedMs);
    return false;
  }

  /** @returns false for a request that the gate refuses, which is answered with an error, in order */
  #admit(
    client: Client,
    session: Session,
    xid: number,
    request: Request,
    nowMs: number,
    { receivedMs, wallMs }: Received,
  ): boolean {
    const error = this.#gate!.refusalOf(session, request, nowMs, wallMs);
    if (error === ErrorCode.ok) return true;
    this.#refuse(client, xid, error, receivedMs);
    return false;
  }

  /** Removes the session at once; the client is answered in order. */
  #endLocal(client: Client, session: Session, xid: number, { receivedMs }: Received): void {
    session.isClosing = true;
    this.#parts.sessions.remove(session);
    this.#parts.trace.emit({ kind: 'session-closed', sessionId: session.id });
    this.#answers.add(client, { kind: 'end', xid, receivedMs, bytes: WAITING_REQUEST_BYTES });
  }

  /** A local session has ended without a closeSession of its client. */
  onLocalSessionEnded({ id }: Session): void {
    const { trace } = this.#parts;
    trace.emit({ kind: 'session-closed', sessionId: id });
    this.#clientOf.get(id)?.closeAfterReplies('its session is closed');
  }

  /** Requests a new session; `onSessionCreated` is called once it exists. */
  createSession(creator: SessionCreator, timeoutMs: number, nowMs: number, wallMs: number): void {
    const { local = null } = this.#parts;
    if (local !== null) {
      creator.onSessionCreated(local.create(timeoutMs, nowMs));
      return;
    }
    this.#creators.set(this.#parts.writes.createSession(timeoutMs, nowMs, wallMs), creator);
  }

  /**
   * Attaches the session to this client and closes the previous connection. Only after the password has been checked:
   * Apache closes the old connection before that, so anyone who guesses a session id can disconnect its client.
   */
  attach(client: Client, session: Session): void {
    this.#clientOf.get(session.id)?.closeAfterReplies(SUPERSEDED);
    this.#clientOf.set(session.id, client);
  }

  clientOf(sessionId: bigint): Client | undefined {
    return this.#clientOf.get(sessionId);
  }

  /** The client's connection is closed: it gets no replies and no events. Its session lives until it expires. */
  detach(client: Client): void {
    const { session } = client;
    if (session !== null && this.#clientOf.get(session.id) === client) this.#clientOf.delete(session.id);
    this.#answers.leave(client);
    this.#parts.watches.removeWatcher(client);
    this.#writers.onLeft(client);
  }

  /** Everything up to the watermark is committed: it is applied and answered in this turn or one of the next. */
  onCommitted(watermark: Committed<Zxid>, nowMs: number): void {
    this.#pace.onCommitted(watermark, nowMs);
  }

  /** True while `onTurnEnd` has something to do: committed txns to apply, or a long request to prepare. */
  get hasWork(): boolean {
    return this.#pace.isBehind || this.#parts.writes.isPreparing;
  }

  onTurnEnd(nowMs: number): void {
    this.#pace.onTurnEnd(nowMs);
    this.#parts.writes.advance();
  }

  /** Applies everything that is committed now. */
  applyAll(nowMs: number): void {
    this.#pace.applyAll(nowMs);
  }

  /** Runs `act` once everything committed so far is applied, possibly at once. */
  whenApplied(act: () => void): void {
    this.#pace.whenApplied(act);
  }

  /** Steps 9–11: applies a committed txn, fires watches and answers the waiting client. */
  apply(next: CommittedTxn, nowMs: number): ApplyResult {
    this.#answerBefore(next);
    const { database, watches } = this.#parts;
    this.#notifiedBefore = watches.notifiedCount;
    const result = database.apply(next.header, next.txn, watches, next.prepared);
    this.end(next, result, nowMs);
    return result;
  }

  begin(next: CommittedTxn): TxnSteps | null {
    this.#answerBefore(next);
    const { database, watches } = this.#parts;
    this.#notifiedBefore = watches.notifiedCount;
    return database.applyInSteps(next.header, next.txn, watches, next.prepared);
  }

  end({ header, txn, write }: CommittedTxn, result: ApplyResult, nowMs: number): void {
    const { database, onApplied, work, meters, audit } = this.#parts;
    const client = write === null ? null : write.client;
    meters.onApplied(header.time, txn);
    if (onApplied !== null) onApplied(header.zxid, database.tree.treeDigest());
    if (audit !== null) audit.onApplied({ header, txn, write });
    if (write !== null && client?.isOpen) this.#answerWrite(client, write, header, txn, result, nowMs);
    // Not charged to a client of this server, and must not be charged to the next one.
    else work.charge(unitsOf(txn));
    this.#writers.onWritten(client, nowMs);
    if (txn.type === OpCode.createSession) this.#onSessionCreated(header.sessionId, nowMs);
    else if (txn.type === OpCode.closeSession) this.#onSessionClosed(header.sessionId);
    else if (write !== null && write.op === OpCode.createSession) this.#onSessionRefused(header.sessionId);
  }

  ephemeralCountOf(sessionId: bigint): number {
    return this.#parts.database.tree.ephemeralCountOf(sessionId);
  }

  #answerBefore({ header, txn, write }: CommittedTxn): void {
    const { audit, database } = this.#parts;
    if (audit !== null && txn.type === OpCode.closeSession) {
      audit.onEphemeralsDeleted(header.sessionId, database.tree.ephemeralsOf(header.sessionId));
    }
    const client = write === null ? null : write.client;
    if (client?.isOpen && client.waiting.oldest !== write) this.#answers.answerBeforeWrite(client);
  }

  /** Every sync up to this ticket is answered once everything committed before them is applied. */
  onSynced(ticket: number): void {
    this.#answers.onSynced(ticket);
  }

  onTxnCompleted(): void {
    this.#answers.onTxnCompleted();
  }

  /** Answers a client's oldest waiting requests, up to the first that must still wait. */
  answerWaiting(client: Client): void {
    this.#answers.answerWaiting(client);
  }

  /** The server's role is over: no more answers. The caller must close the clients' connections. */
  drop(): void {
    for (const client of [...this.#clientOf.values()]) this.detach(client);
    this.#answers.drop();
    this.#creators.clear();
    this.#pace.drop();
  }

  #answerWrite(
    client: Client,
    write: WaitingWrite,
    header: TxnHeader,
    txn: Txn,
    result: ApplyResult,
    nowMs: number,
  ): void {
    client.waiting.removeWrite(write);
    this.#maybePause(client, txn, nowMs);
    const error = replyErrorOf(txn);
    const writer = client.output.beginReply(write.xid, header.zxid, error);
    if (error === ErrorCode.ok) writeReplyRecord(writer, write, txn, result, this.#parts.database.tree);
    client.output.endReply(write.receivedMs);
    this.#parts.meters.onAnswered(write.op, write.receivedMs);
    // A client that has sent closeSession is disconnected even if that failed: its session has ended or will end.
    if (write.op === OpCode.closeSession && error !== ErrorCode.ok) client.closeAfterReplies('its session is closed');
    if (client.waiting.length > 0) this.#answers.answerWaiting(client);
    client.charge(unitsOf(txn));
  }

  /** Pauses a client after a long multi or a write that fires many watches, or if its session owns many ephemerals. */
  #maybePause(client: Client, txn: Txn, nowMs: number): void {
    const { waiting, session } = client;
    const parts = excessOf(txn, this.#parts.watches.notifiedCount - this.#notifiedBefore);
    const made = ephemeralsMadeBy(txn);
    const owned = made === 0 ? 0 : this.ephemeralCountOf(session!.id) - SHORT_END_EPHEMERALS;
    const ephemerals = Math.min(made, owned);
    if (parts <= 0 && ephemerals <= 0) return;
    const isContended = this.#writers.haveOthersWritten(client, nowMs);
    const leftMs = Math.max(0, waiting.pausedUntilMs - nowMs);
    waiting.pauseUntil(nowMs + pauseFor(parts, ephemerals, isContended, session!.timeoutMs, leftMs));
  }

  #onSessionCreated(sessionId: bigint, nowMs: number): void {
    const session = this.#parts.sessions.get(sessionId);
    const creator = this.#creators.get(sessionId);
    this.#creators.delete(sessionId);
    if (session === undefined || creator === undefined || !creator.isOpen) return;
    if (this.#parts.sessions.touch(session, nowMs)) creator.onSessionCreated(session);
    else creator.close(SILENT);
  }

  /** The proposing server has refused the session. */
  #onSessionRefused(sessionId: bigint): void {
    const client = this.#creators.get(sessionId) ?? this.#clientOf.get(sessionId);
    client?.close('its session has been refused');
    this.#creators.delete(sessionId);
  }

  #onSessionClosed(sessionId: bigint): void {
    const session = this.#parts.sessions.get(sessionId);
    if (session !== undefined) this.#parts.sessions.remove(session);
    this.#parts.trace.emit({ kind: 'session-closed', sessionId });
    this.#clientOf.get(sessionId)?.closeAfterReplies('its session is closed');
  }
}

const SILENT = 'its session has timed out here; only the leader knows whether it is still alive';

/** Memory of a waiting request besides its record; 170 bytes were measured for a getData. */
const WAITING_REQUEST_BYTES = 200;
