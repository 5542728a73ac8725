import {
  EMPTY_BYTES,
  ErrorCode,
  type ForwardedRequestPacket,
  type JuteReader,
  JuteWriter,
  OpCode,
  PacketType,
  type Txn,
  type TxnHeader,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { Identity } from '../base/ports.ts';
import type { Received } from '../base/turn.ts';
import type { LearnerSessions } from '../session/learner-sessions.ts';
import type { Session } from '../session/session.ts';
import type { SessionIds } from '../session/session-ids.ts';
import type { Client, WaitingWrite } from './client.ts';
import { MOVED, type TxnRequest, type WritePath } from './write-path.ts';

/** Requests of a learner's clients to its leader. An effect returns at once; its outcome is an event. */
export interface ForwarderEffects {
  /** `body` is a view of bytes that are no longer modified. */
  forward(packet: ForwardedRequestPacket): void;
}

/** A write that was forwarded to the leader. */
class ForwardedWrite implements WaitingWrite {
  readonly kind = 'write';
  readonly client: Client | null;
  readonly xid: number;
  readonly op: number;
  bytes = 0;
  readonly partOps: readonly number[] | null;
  readonly receivedMs: number;
  /** The last zxid that had been proposed to this learner at that time: the write's own is later. */
  readonly after: Zxid;

  constructor(
    client: Client | null,
    xid: number,
    op: number,
    partOps: readonly number[] | null,
    receivedMs: number,
    after: Zxid,
  ) {
    this.client = client;
    this.xid = xid;
    this.op = op;
    this.partOps = partOps;
    this.receivedMs = receivedMs;
    this.after = after;
  }
}

/**
 * The write path of a follower or observer: writes and syncs go to the leader as the client sent them (REQUEST), and
 * committed txns are matched to the writes that they answer.
 *
 *     write ──► REQUEST ──► leader ──► PROPOSAL, COMMIT ──► take: the txn and the write that it answers
 *
 * 1. The leader answers every write with a txn that has the write's session and xid, in request order.
 * 2. A txn answers a write only if it was proposed to this learner after the write was forwarded. An earlier one with
 *    the same xid was requested through another server, before the session moved here.
 * 3. A SESSIONMOVED txn closes the waiting client: the session is at another server, or was until this one revalidated
 *    it. In the second case the txn may be meant for that other server, so every write of the session that was
 *    forwarded before it stays unanswered.
 * 4. The write of a closed connection is kept until its txn arrives, so that the txn is not taken for the answer to a
 *    later write of the same session.
 *
 * Writes with equal xids that one session sends over connections to two servers at the same time cannot be
 * distinguished: the older connection may get the other one's reply before SESSIONMOVED closes it. No client does that.
 */
export class Forwarder implements WritePath {
  /** Only the leader prepares requests. */
  readonly isPreparing = false;
  readonly #sessions: LearnerSessions;
  readonly #sessionIds: SessionIds;
  readonly #effects: ForwarderEffects;
  /** Writes by session, oldest first; no list is empty. */
  readonly #forwarded = new Map<bigint, ForwardedWrite[]>();
  #lastProposed: Zxid;
  #inFlightCount = 0;
  #syncCount = 0;

  constructor(sessions: LearnerSessions, sessionIds: SessionIds, effects: ForwarderEffects, lastZxid: Zxid) {
    this.#sessions = sessions;
    this.#sessionIds = sessionIds;
    this.#effects = effects;
    this.#lastProposed = lastZxid;
  }

  get inFlightCount(): number {
    return this.#inFlightCount;
  }

  advance(): void {}

  write(
    client: Client,
    session: Session,
    xid: number,
    request: TxnRequest,
    { receivedMs }: Received,
    record: JuteReader,
  ): void {
    const body = record.bytes.subarray(record.position, record.end);
    const partOps = request.op === OpCode.multi ? request.ops.map(({ op }) => op) : null;
    const write = new ForwardedWrite(client, xid, request.op, partOps, receivedMs, this.#lastProposed);
    this.#forwardFor(client, session, write, body);
  }

  closeSession(client: Client, session: Session, xid: number, { receivedMs }: Received): void {
    this.#sessions.setClosing(session);
    const write = new ForwardedWrite(client, xid, OpCode.closeSession, null, receivedMs, this.#lastProposed);
    this.#forwardFor(client, session, write, EMPTY_BYTES);
  }

  /** @returns the ticket: the number of syncs that this learner has sent in its role */
  sync(session: Session, xid: number, record: JuteReader): number {
    const body = record.bytes.subarray(record.position, record.end);
    this.#send(session.id, xid, OpCode.sync, body, NO_IDENTITIES);
    this.#syncCount++;
    return this.#syncCount;
  }

  createSession(timeoutMs: number, nowMs: number): bigint {
    const id = this.#sessionIds.next((taken) => this.#sessions.isTaken(taken));
    this.#sessions.open(id, timeoutMs, nowMs);
    this.#create(id, timeoutMs, nowMs);
    return id;
  }

  upgradeSession(session: Session, nowMs: number): void {
    this.#sessions.adopt(session, nowMs);
    this.#create(session.id, session.timeoutMs, nowMs);
  }

  #create(id: bigint, timeoutMs: number, nowMs: number): void {
    const body = new JuteWriter(4);
    body.int(timeoutMs);
    const write = new ForwardedWrite(null, 0, OpCode.createSession, null, nowMs, this.#lastProposed);
    this.#forward(id, write, body.toBytes());
  }

  /** Ends a session, whichever server its client is connected to. */
  endSession(sessionId: bigint): void {
    const write = new ForwardedWrite(null, 0, OpCode.closeSession, null, 0, this.#lastProposed);
    this.#forward(sessionId, write, EMPTY_BYTES);
  }

  onProposed(zxid: Zxid): void {
    assert(zxid > this.#lastProposed, 'proposals come in the order of their zxids');
    this.#lastProposed = zxid;
  }

  /** The txn is about to be applied. @returns the local write that it answers, or null */
  take(header: TxnHeader, txn: Txn): ForwardedWrite | null {
    const { sessionId, cxid, zxid } = header;
    const writes = this.#forwarded.get(sessionId);
    if (writes === undefined) return null;
    let at = 0;
    while (at < writes.length && writes[at]!.xid !== cxid) at++;
    const write = writes[at];
    if (write === undefined || write.after >= zxid) return null;
    // An observer receives a txn when it is committed, so one that another server forwarded may arrive here after the
    // session has moved, and some clients restart their xids on each connection.
    if (txn.type !== write.op && txn.type !== OpCode.error) return null;
    if (isMoved(txn)) closeAll(writes);
    // The leader answers in order, so the writes that it skipped will not be answered: their clients must reconnect.
    for (let i = 0; i < at; i++) writes[i]!.client?.close('the leader has not answered its request');
    if (at + 1 === writes.length) this.#forwarded.delete(sessionId);
    else writes.splice(0, at + 1);
    this.#inFlightCount -= at + 1;
    return write;
  }

  /** The role is over: no more answers arrive. */
  drop(): void {
    this.#forwarded.clear();
    this.#inFlightCount = 0;
  }

  #forwardFor(client: Client, session: Session, write: ForwardedWrite, body: Uint8Array): void {
    write.bytes = body.length;
    client.waiting.addWrite(write);
    this.#forward(session.id, write, body, client.identities);
  }

  #forward(
    sessionId: bigint,
    write: ForwardedWrite,
    body: Uint8Array,
    identities: readonly Identity[] = NO_IDENTITIES,
  ): void {
    const writes = this.#forwarded.get(sessionId);
    if (writes === undefined) this.#forwarded.set(sessionId, [write]);
    else writes.push(write);
    this.#inFlightCount++;
    this.#send(sessionId, write.xid, write.op, body, identities);
  }

  #send(sessionId: bigint, cxid: number, op: number, body: Uint8Array, authInfo: readonly Identity[]): void {
    this.#effects.forward({ type: PacketType.request, sessionId, cxid, op, body, authInfo });
  }
}

const NO_IDENTITIES: readonly Identity[] = [];

/** Apache's leader puts the error into the first part of a multi. */
function isMoved(txn: Txn): boolean {
  const first = txn.type === OpCode.multi ? txn.txns[0] : txn;
  return first?.type === OpCode.error && first.error === ErrorCode.sessionMoved;
}

function closeAll(writes: readonly ForwardedWrite[]): void {
  for (const { client } of writes) client?.closeAfterReplies(MOVED);
}
