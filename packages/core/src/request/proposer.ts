import {
  type AuthId,
  EMPTY_BYTES,
  ErrorCode,
  Fifo,
  type ForwardedRequestPacket,
  getInt,
  isClientOp,
  JuteReader,
  OpCode,
  readRequest,
  type Txn,
  type TxnHeader,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { Meters } from '../base/meters/meters.ts';
import type { Identity } from '../base/ports.ts';
import type { Received } from '../base/turn.ts';
import type { ForeignSessions } from '../session/foreign-sessions.ts';
import { Session, SessionOwner } from '../session/session.ts';
import type { SessionIds } from '../session/session-ids.ts';
import type { SessionTracker } from '../session/session-tracker.ts';
import type { ApplyResult } from '../tree/apply-result.ts';
import { weightOfAll } from '../tree/change-weight.ts';
import { type Prepared, UNPREPARED } from '../tree/prepared.ts';
import type { Broadcast } from '../zab/broadcast.ts';
import type { Committed } from '../zab/committed.ts';
import type { CommittedTxn, CommittedTxns } from './apply-pace.ts';
import type { Client, WaitingWrite } from './client.ts';
import type { PendingTree } from './pending.ts';
import { Preparation } from './preparation.ts';
import type { Preparer } from './prepare.ts';
import type { PrepareSteps } from './prepare-steps.ts';
import type { ReconfigPreparer } from './reconfig-preparer.ts';
import type { WorkMeter } from './work-meter.ts';
import { isTxnRequest, MOVED, needsReplicatedSession, type TxnRequest, type WritePath } from './write-path.ts';

/** A write that has no txn yet. */
type Slot = WaitingWrite;

export interface ProposerParts {
  readonly pending: PendingTree;
  readonly preparer: Preparer;
  readonly reconfigs: ReconfigPreparer;
  readonly sessions: SessionTracker;
  readonly sessionIds: SessionIds;
  /** null: an unknown session does not exist. */
  readonly foreignSessions?: ForeignSessions | null;
  readonly broadcast: Broadcast;
  readonly meters: Meters;
  readonly work: WorkMeter;
  /** As in `Preparation`. Default: suitable for a real server. */
  readonly preparedPerTurn?: number | undefined;
}

/**
 * A txn on its way to the quorum. The same object is used from the proposal to the reply, and is also the waiting
 * request of a local client. Proposals for learners' clients and for the server itself have no client.
 */
export class Proposal implements WaitingWrite, CommittedTxn {
  readonly kind = 'write';
  readonly header: TxnHeader;
  readonly txn: Txn;
  readonly client: Client | null;
  readonly xid: number;
  readonly op: number;
  /** Not needed: the txn was prepared here. */
  readonly partOps = null;
  readonly receivedMs: number;
  /** Values that prepare has already computed. */
  readonly prepared: Prepared;
  /** Size of the txn. */
  bytes = 0;

  constructor(header: TxnHeader, txn: Txn, client: Client | null, op: number, receivedMs: number, prepared: Prepared) {
    this.header = header;
    this.txn = txn;
    this.client = client;
    this.xid = header.cxid;
    this.op = op;
    this.receivedMs = receivedMs;
    this.prepared = prepared;
  }

  get write(): WaitingWrite {
    return this;
  }
}

/**
 * The write path of a standalone server or leader: every write is prepared, takes the next zxid and is proposed.
 *
 *     write     ─┐
 *     forwarded ─┴─► prepare ──► propose ──► … Committed … ──► take
 *
 * 1. Every write takes a zxid, even if it fails: a learner matches the answer to its client's request by the session
 *    and the xid in the txn's header.
 * 2. After a session's closeSession, its writes are proposed as error txns only.
 */
export class Proposer implements WritePath, CommittedTxns {
  readonly #parts: ProposerParts;
  /** Proposals that are not applied yet, in zxid order. */
  readonly #inFlight: Fifo<Proposal> = new Fifo();
  readonly #preparation: Preparation;

  constructor(parts: ProposerParts) {
    this.#parts = parts;
    this.#preparation = new Preparation(parts.preparedPerTurn);
  }

  get inFlightCount(): number {
    return this.#inFlight.length + this.#preparation.length;
  }

  get isPreparing(): boolean {
    return this.#preparation.hasWork;
  }

  advance(): void {
    this.#preparation.advance();
  }

  /** Runs `act` now, or after everything that is being prepared. */
  inTurn(act: () => void): void {
    if (this.#preparation.isBusy) this.#preparation.wait(act);
    else act();
  }

  /**
   * A sync of a learner's client: SYNC must not overtake the commits of earlier requests of its session.
   *
   * @param onTicket called with the broadcast ticket to wait for, once all earlier requests are proposed
   */
  forwardedSync(onTicket: (ticket: number) => void): void {
    this.inTurn(() => onTicket(this.#parts.broadcast.sync()));
  }

  /* -------------------------------------------------------------------------------- this server's clients ---- */

  write(
    client: Client,
    session: Session,
    xid: number,
    request: TxnRequest,
    { receivedMs, wallMs }: Received,
    record: JuteReader,
  ): void {
    if (this.#preparation.isBusy) {
      const slot = this.#takeSlot(client, xid, request.op, bytesOf(record), receivedMs);
      this.#preparation.wait(() => this.#write(client, session, request, slot, wallMs));
      return;
    }
    if (session.owner !== SessionOwner.local) {
      client.closeAfterReplies(MOVED);
    } else if (request.op === OpCode.multi && weightOfAll(request.ops) > this.#preparation.stepsPerTurn) {
      const slot = this.#takeSlot(client, xid, request.op, bytesOf(record), receivedMs);
      this.#write(client, session, request, slot, wallMs);
    } else {
      if (request.op === OpCode.multi) this.#preparation.count(weightOfAll(request.ops));
      const header = this.#makeHeader(session.id, xid, wallMs);
      const proposal = this.#makeProposal(
        header,
        this.#prepare(request, header, client.identities),
        client,
        request.op,
        receivedMs,
      );
      this.#propose(proposal);
      client.waiting.addWrite(proposal);
    }
  }

  /** Prepares a write that has a slot in its client's queue. */
  #write(client: Client, session: Session, request: TxnRequest, slot: Slot, wallMs: number): void {
    if (session.owner !== SessionOwner.local) {
      client.closeAfterReplies(MOVED);
      return;
    }
    const header = this.#makeHeader(session.id, slot.xid, wallMs);
    // It has waited behind the end, which another server or an operator asked for before it came.
    if (session.isEnded) this.#proposeFor(client, header, errorTxn(ErrorCode.sessionExpired), slot);
    else if (request.op === OpCode.multi) {
      const steps = this.#parts.preparer.multiSteps(request, header, client.identities);
      this.#preparation.begin(steps, (txn) => this.#proposeFor(client, header, txn, slot));
    } else {
      this.#proposeFor(client, header, this.#prepare(request, header, client.identities), slot);
    }
  }

  closeSession(client: Client, session: Session, xid: number, { receivedMs, wallMs }: Received): void {
    if (session.owner !== SessionOwner.local) {
      client.closeAfterReplies(MOVED);
      return;
    }
    this.#parts.sessions.setClosing(session);
    const slot = this.#takeSlot(client, xid, OpCode.closeSession, 0, receivedMs);
    if (this.#preparation.isBusy) this.#preparation.wait(() => this.#closeSession(client, session, slot, wallMs));
    else this.#closeSession(client, session, slot, wallMs);
  }

  #closeSession(client: Client, session: Session, slot: Slot, wallMs: number): void {
    const header = this.#makeHeader(session.id, slot.xid, wallMs);
    session.isEnded = true;
    const steps = this.#parts.preparer.closeSessionSteps(session.id, header.zxid);
    this.#preparation.begin(steps, (txn) => this.#proposeFor(client, header, txn, slot));
  }

  sync(): number {
    return this.#parts.broadcast.sync();
  }

  createSession(timeoutMs: number, nowMs: number, wallMs: number): bigint {
    const { sessions, sessionIds } = this.#parts;
    const id = sessionIds.next((taken) => sessions.isTaken(taken));
    this.#track(id, timeoutMs, SessionOwner.local, nowMs);
    this.#create(id, timeoutMs, wallMs);
    return id;
  }

  upgradeSession(session: Session, nowMs: number, wallMs: number): void {
    this.#parts.sessions.add(session, nowMs);
    this.#create(session.id, session.timeoutMs, wallMs);
  }

  #create(id: bigint, timeoutMs: number, wallMs: number): void {
    this.inTurn(() => this.#proposeOwn(this.#makeHeader(id, 0, wallMs), { type: OpCode.createSession, timeoutMs }));
  }

  /* ----------------------------------------------------------------------------------- learners' clients ---- */

  /**
   * A write, createSession or closeSession that a learner has forwarded.
   *
   * @param owner the learner's server id
   */
  forwarded(owner: number, request: ForwardedRequestPacket, nowMs: number, wallMs: number): void {
    if (request.op === OpCode.createSession) this.#forwardedSession(owner, request, nowMs, wallMs);
    else if (this.#preparation.isBusy) {
      const kept = { ...request, body: request.body.slice() };
      this.#preparation.wait(() => this.#forwarded(owner, kept, nowMs, wallMs));
    } else {
      this.#forwarded(owner, request, nowMs, wallMs);
    }
  }

  /** The session lives from now on: its learner reports it as alive while its txn waits for long requests before it. */
  #forwardedSession(
    owner: number,
    { sessionId, cxid, body }: ForwardedRequestPacket,
    nowMs: number,
    wallMs: number,
  ): void {
    let txn: Txn;
    if (body.length < 4) txn = errorTxn(ErrorCode.marshallingError);
    // The id already belongs to another client.
    else if (this.#parts.sessions.get(sessionId) !== undefined) txn = errorTxn(ErrorCode.sessionExpired);
    else {
      const timeoutMs = getInt(body, 0);
      this.#track(sessionId, timeoutMs, owner, nowMs);
      txn = { type: OpCode.createSession, timeoutMs };
    }
    this.inTurn(() => {
      const header = this.#makeHeader(sessionId, cxid, wallMs);
      this.#propose(this.#makeProposal(header, txn, null, OpCode.createSession, nowMs));
      this.#countCharge();
    });
  }

  /** Its client has no turn share on this server; the cost counts against the turn. */
  #countCharge(): void {
    this.#preparation.count(this.#parts.work.charge(0) >> UNITS_PER_STEP_SHIFT);
  }

  #forwarded(owner: number, request: ForwardedRequestPacket, nowMs: number, wallMs: number): void {
    const header = this.#makeHeader(request.sessionId, request.cxid, wallMs);
    const propose = (txn: Txn): void => this.#propose(this.#makeProposal(header, txn, null, request.op, nowMs));
    const prepared = this.#prepareForwarded(owner, request, header);
    if ('advance' in prepared) this.#preparation.begin(prepared, propose);
    else propose(prepared);
    this.#countCharge();
  }

  #prepareForwarded(owner: number, request: ForwardedRequestPacket, header: TxnHeader): Txn | PrepareSteps {
    const { sessionId, op, body } = request;
    // A server of version 3.8.0 forwards a check outside of a multi; it must never get into a log (ZOOKEEPER-2623).
    if (!isClientOp(op)) return errorTxn(ErrorCode.unimplemented);
    const error = this.#admit(owner, request);
    if (error !== ErrorCode.ok) return errorTxn(error);
    BODY.reset(body, 0, body.length);
    const read = readRequest(op, BODY);
    if (read === null) return errorTxn(ErrorCode.marshallingError);
    // A local session may write, but not create ephemerals.
    if (needsReplicatedSession(read) && !this.#parts.sessions.isTaken(sessionId)) {
      return errorTxn(ErrorCode.sessionExpired);
    }
    const { preparer } = this.#parts;
    const identities = request.authInfo.filter(isIdentity);
    if (read.op === OpCode.multi) return preparer.multiSteps(read, header, identities);
    if (isTxnRequest(read)) return this.#prepare(read, header, identities);
    const session = this.#parts.sessions.get(sessionId);
    if (op !== OpCode.closeSession || session === undefined) return errorTxn(ErrorCode.unimplemented);
    this.#parts.sessions.setClosing(session);
    session.isEnded = true;
    return preparer.closeSessionSteps(sessionId, header.zxid);
  }

  /** A closeSession by a server, which has xid 0, need not come from the server that the client is connected to. */
  #admit(owner: number, { sessionId, cxid, op }: ForwardedRequestPacket): ErrorCode {
    const session = this.#parts.sessions.get(sessionId);
    const isLive = session !== undefined && !session.isClosing;
    if (op === OpCode.closeSession && cxid === 0 && isLive) return ErrorCode.ok;
    const error = this.#parts.sessions.admit(sessionId, owner);
    const isUnknown = error === ErrorCode.sessionExpired && session === undefined;
    return isUnknown && this.#parts.foreignSessions?.mayBeLocal(sessionId) ? ErrorCode.ok : error;
  }

  /* ------------------------------------------------------------------------------ on the server's account ---- */

  /** Deletes a session, which may be unknown, and its ephemerals. */
  endSession(sessionId: bigint, wallMs: number): void {
    this.inTurn(() => {
      const header = this.#makeHeader(sessionId, 0, wallMs);
      const steps = this.#parts.preparer.closeSessionSteps(sessionId, header.zxid);
      this.#preparation.begin(steps, (txn) => this.#proposeOwn(header, txn));
    });
  }

  /** Deletes a container or TTL znode if it is still due. */
  collect(path: string, wallMs: number): void {
    this.inTurn(() => this.#collect(path, wallMs));
  }

  #collect(path: string, wallMs: number): void {
    if (!this.#parts.preparer.isCollectable(path, wallMs)) return;
    const header = this.#makeHeader(0n, 0, wallMs);
    this.#proposeOwn(header, this.#parts.preparer.prepareDeleteContainer(path, header.zxid));
  }

  /* --------------------------------------------------------------------------------------------- in flight ---- */

  /** @returns the oldest proposal, to be applied now, or null when it is not committed yet */
  take(watermark: Committed<Zxid>): Proposal | null {
    const oldest = this.#inFlight.peek();
    if (oldest === undefined || oldest.header.zxid > watermark) return null;
    this.#inFlight.shift();
    return oldest;
  }

  onApplied({ header, txn }: CommittedTxn, { error }: ApplyResult): void {
    const mayFail = txn.type === OpCode.error || txn.type === OpCode.multi;
    assert(mayFail || error === ErrorCode.ok, 'a txn that was prepared can be applied');
    this.#parts.pending.onApplied(header.zxid);
  }

  /** The role is over: drops everything in flight. */
  drop(): void {
    this.#preparation.drop();
    this.#inFlight.takeAll();
  }

  #makeHeader(sessionId: bigint, cxid: number, wallMs: number): TxnHeader {
    return { sessionId, cxid, zxid: this.#parts.broadcast.nextZxid(), time: wallMs };
  }

  #track(id: bigint, timeoutMs: number, owner: number, nowMs: number): void {
    const session = new Session(id, timeoutMs);
    session.owner = owner;
    this.#parts.sessions.add(session, nowMs);
  }

  #prepare(request: TxnRequest, header: TxnHeader, identities: readonly Identity[]): Txn {
    switch (request.op) {
      case OpCode.multi:
        return this.#parts.preparer.prepareMulti(request, header, identities);
      case OpCode.reconfig:
        return this.#parts.reconfigs.prepare(request, header, identities);
      default:
        return this.#parts.preparer.prepareWrite(request, header, identities);
    }
  }

  #makeProposal(header: TxnHeader, txn: Txn, client: Client | null, op: number, receivedMs: number): Proposal {
    return new Proposal(header, txn, client, op, receivedMs, this.#parts.preparer.preparedOf(txn));
  }

  /** Reserves a write's place in its client's queue until it has its txn. */
  #takeSlot(client: Client, xid: number, op: number, bytes: number, receivedMs: number): Slot {
    const slot: Slot = { kind: 'write', client, xid, op, bytes, partOps: null, receivedMs };
    client.waiting.addWrite(slot);
    return slot;
  }

  #proposeFor(client: Client, header: TxnHeader, txn: Txn, slot: Slot): void {
    const proposal = this.#makeProposal(header, txn, client, slot.op, slot.receivedMs);
    this.#propose(proposal);
    client.waiting.replaceWrite(slot, proposal);
  }

  #proposeOwn(header: TxnHeader, txn: Txn): void {
    this.#propose(new Proposal(header, txn, null, txn.type, 0, UNPREPARED));
  }

  #propose(proposal: Proposal): void {
    this.#inFlight.push(proposal);
    this.#parts.meters.prepared++;
    const { header, txn } = proposal;
    // An error txn has no digest, as in Apache's logs.
    const digest = txn.type === OpCode.error ? null : this.#parts.pending.treeDigest();
    proposal.bytes = this.#parts.broadcast.propose(header, txn, digest);
  }
}

/** A preparation step costs 16 units of the work meter. */
const UNITS_PER_STEP_SHIFT = 4;

/** No length limit: the link has already checked the length of the packet. */
const BODY = new JuteReader(EMPTY_BYTES, 2 ** 31 - 1);

/** @param record not yet read */
function bytesOf({ position, end }: JuteReader): number {
  return end - position;
}

function errorTxn(error: ErrorCode): Txn {
  return { type: OpCode.error, error };
}

function isIdentity(id: AuthId): id is Identity {
  return id.scheme !== null && id.id !== null;
}
