import {
  Fifo,
  type RevalidateRequestPacket,
  type SessionTimeout,
  type Txn,
  type TxnEntry,
  type TxnHeader,
  txnBytesMaxOf,
  type Zxid,
} from '@meerkat/protocol';
import type { Meters } from '../base/meters/meters.ts';
import type { Trace } from '../base/ports.ts';
import { LearnerSessions } from '../session/learner-sessions.ts';
import { LocalSessions } from '../session/local-sessions.ts';
import { SUPERSEDED } from '../session/revalidations.ts';
import type { SessionTable } from '../session/session-table.ts';
import type { Database } from '../tree/database.ts';
import { type Prepared, UNPREPARED } from '../tree/prepared.ts';
import type { Committed } from '../zab/committed.ts';
import type { CommittedTxn, CommittedTxns } from './apply-pace.ts';
import type { WaitingWrite } from './client.ts';
import { DigestComparison } from './digest-comparison.ts';
import { Forwarder, type ForwarderEffects } from './forwarder.ts';
import { endDueSessions, endLocalSession, readsPartsOf, type ServingParts } from './leader-serving.ts';
import { Pipeline } from './pipeline.ts';
import { Reads } from './read.ts';
import { UpgradeGate } from './request-gate.ts';

/** Requests of a learner's clients to its leader. An effect returns at once; its outcome is an event. */
export interface LearnerServingEffects extends ForwarderEffects {
  revalidate(packet: RevalidateRequestPacket): void;
}

/** A txn of the leader, with the local write that it answers. */
export class LearnedTxn implements CommittedTxn {
  readonly entry: TxnEntry;
  readonly write: WaitingWrite | null;
  readonly prepared: Prepared = UNPREPARED;

  constructor(entry: TxnEntry, write: WaitingWrite | null) {
    this.entry = entry;
    this.write = write;
  }

  get header(): TxnHeader {
    return this.entry.header;
  }

  get txn(): Txn {
    return this.entry.txn;
  }
}

/**
 * The volatile state of a follower or observer that serves clients: reads are answered here, everything else goes to
 * the leader and comes back as txns.
 */
export class LearnerServing implements CommittedTxns<LearnedTxn> {
  readonly database: Database;
  /** The replicated sessions. */
  readonly sessions: LearnerSessions;
  /** null where local sessions are disabled. */
  readonly local: LocalSessions | null;
  /** All sessions that clients can resume here. */
  readonly table: SessionTable;
  readonly pipeline: Pipeline;
  readonly #forwarder: Forwarder;
  /** Txns that are not applied yet, in zxid order. */
  readonly #inFlight: Fifo<TxnEntry> = new Fifo();
  #lastApplied: Zxid;
  readonly #comparison: DigestComparison | null;
  readonly #trace: Trace;
  readonly #meters: Meters;
  readonly #touchedMax: number;

  constructor(parts: ServingParts, effects: LearnerServingEffects, nowMs: number) {
    const { options, database, watches, sessionIds, trace } = parts;
    const sessions = new LearnerSessions(database.sessions, (packet) => {
      this.pipeline.clientOf(packet.sessionId)?.closeAfterReplies(SUPERSEDED);
      effects.revalidate(packet);
    });
    this.database = database;
    this.#lastApplied = database.lastZxid;
    this.sessions = sessions;
    this.#meters = parts.meters;
    this.#forwarder = new Forwarder(sessions, sessionIds, effects, database.lastZxid);
    const { localSessionsEnabled = false, localSessionsUpgradingEnabled = false } = options.ensemble ?? {};
    const local = localSessionsEnabled
      ? new LocalSessions({ replicated: sessions, sessionIds, tickMs: options.tickTimeMs }, nowMs)
      : null;
    this.local = local;
    this.table = local ?? sessions;
    this.pipeline = new Pipeline({
      database,
      reads: new Reads(readsPartsOf(parts)),
      watches,
      sessions: this.table,
      writes: parts.audit?.follow(this.#forwarder) ?? this.#forwarder,
      local,
      gate: local === null ? null : new UpgradeGate(local, this.#forwarder, localSessionsUpgradingEnabled),
      audit: parts.audit ?? null,
      limits: parts.limits ?? null,
      work: parts.work,
      meters: parts.meters,
      trace,
      onApplied: parts.onApplied,
      ...(parts.pace === undefined ? {} : { pace: parts.pace }),
      committed: this,
      lastSynced: 0,
    });
    this.#touchedMax = Math.floor(txnBytesMaxOf(options.frameBytesMax, options.extraBytesMax) / SESSION_TIMEOUT_BYTES);
    this.#trace = trace;
    this.#comparison = options.digestEnabled ? new DigestComparison(database.tree, trace) : null;
  }

  /** The last txn that is applied and answered; it is no longer needed. */
  get lastApplied(): Zxid {
    return this.#lastApplied;
  }

  /* ------------------------------------------------------------------------------------------ the leader ---- */

  /** Queues a txn, to be applied once it is committed. Called in zxid order. */
  onProposed(entry: TxnEntry): void {
    this.#forwarder.onProposed(entry.header.zxid);
    this.#meters.onProposalReceived(entry.header.time);
    this.#inFlight.push(entry);
  }

  /** Everything up to the watermark is committed: it is applied and answered in this turn or one of the next. */
  onCommitted(watermark: Committed<Zxid>, nowMs: number): void {
    this.pipeline.onCommitted(watermark, nowMs);
  }

  take(watermark: Committed<Zxid>): LearnedTxn | null {
    const next = this.#inFlight.peek();
    if (next === undefined || next.header.zxid > watermark) return null;
    this.#inFlight.shift();
    return new LearnedTxn(next, this.#forwarder.take(next.header, next.txn));
  }

  onApplied({ entry }: LearnedTxn): void {
    this.#lastApplied = entry.header.zxid;
    if (entry.digest !== null) this.#comparison?.onApplied(entry.header.zxid, entry.digest);
  }

  /** @param count syncs answered since the role began; everything committed before them is applied */
  onSynced(count: number): void {
    this.pipeline.onSynced(count);
  }

  /** The leader's answer about the session of a reconnecting client. */
  onRevalidated(sessionId: bigint, isValid: boolean): void {
    // Once everything committed is applied, the session is known here.
    this.pipeline.whenApplied(() => this.sessions.revalidations.onRevalidated(sessionId, isValid));
  }

  /** Sessions touched since the last call, for the reply to the leader's ping; limited by the leader's packet size. */
  takeTouched(nowMs: number): readonly SessionTimeout[] {
    return this.sessions.takeTouched(this.#touchedMax, nowMs);
  }

  /* -------------------------------------------------------------------------------------------------------- */

  /** A learner has no timers except those of local sessions. */
  get nextDeadlineMs(): number {
    return this.local?.nextDeadlineMs ?? Number.POSITIVE_INFINITY;
  }

  onTick(nowMs: number): void {
    if (this.local !== null) endDueSessions(this.local, this.pipeline, this.#trace, nowMs);
  }

  /** Asks the leader to end a session. @returns false when there is no such session */
  expireSession(id: bigint): boolean {
    const session = this.table.get(id);
    if (session?.isLocal) {
      endLocalSession(session, this.table, this.pipeline);
      return true;
    }
    if (!this.database.sessions.has(id)) return false;
    this.#forwarder.endSession(id);
    return true;
  }

  /** The role is over: nothing that waits or is in flight is answered. The clients' connections are to be closed. */
  drop(): void {
    this.#inFlight.takeAll();
    this.#forwarder.drop();
    this.sessions.revalidations.drop();
    this.pipeline.drop();
  }
}

/** A session in the reply to a ping: long sessionId, int timeoutMs. */
const SESSION_TIMEOUT_BYTES = 12;
