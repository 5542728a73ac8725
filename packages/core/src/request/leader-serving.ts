import { type ForwardedRequestPacket, OpCode, type SessionTimeout, txnBytesMaxOf, type Zxid } from '@meerkat/protocol';
import type { Meters } from '../base/meters/meters.ts';
import type { CoreOptions } from '../base/options.ts';
import type { Authenticator, Trace } from '../base/ports.ts';
import { ForeignSessions } from '../session/foreign-sessions.ts';
import { LocalSessions } from '../session/local-sessions.ts';
import { Session } from '../session/session.ts';
import type { SessionIds } from '../session/session-ids.ts';
import type { SessionTable } from '../session/session-table.ts';
import { SessionTracker } from '../session/session-tracker.ts';
import type { Database } from '../tree/database.ts';
import type { WatchManager } from '../watch/watch-manager.ts';
import type { Broadcast } from '../zab/broadcast.ts';
import type { Committed } from '../zab/committed.ts';
import { NO_LEASES, type SessionLeases } from '../zab/learner-answers.ts';
import type { PaceLimits } from './apply-pace.ts';
import type { AuditTrail } from './audit-trail.ts';
import { ContainerSweep } from './container-sweep.ts';
import { PendingTree } from './pending.ts';
import type { Permission } from './permission.ts';
import { type OnApplied, Pipeline } from './pipeline.ts';
import { Preparer } from './prepare.ts';
import { Proposer } from './proposer.ts';
import { type LeaseKnowledge, Reads, type ReadsParts } from './read.ts';
import { NoReconfigurer, ReconfigPreparer, type Reconfigurer } from './reconfig-preparer.ts';
import { UpgradeGate } from './request-gate.ts';
import type { ServingLimits } from './serving-limits.ts';
import type { WorkMeter } from './work-meter.ts';
import { MOVED } from './write-path.ts';

/** The parts that serving clients needs in every role. */
export interface ServingParts {
  readonly options: CoreOptions;
  readonly database: Database;
  readonly permission: Permission;
  readonly authenticator: Authenticator;
  readonly watches: WatchManager;
  /** Lives as long as the server: an id must not be reused, not even in another role. */
  readonly sessionIds: SessionIds;
  readonly work: WorkMeter;
  readonly meters: Meters;
  readonly trace: Trace;
  readonly onApplied: OnApplied | null;
  /** As in `PipelineParts`. */
  readonly pace?: PaceLimits;
  /** Default: no limits. */
  readonly limits?: ServingLimits;
  readonly audit?: AuditTrail | null;
  /** As in `ReadsParts`. */
  readonly knowledge?: LeaseKnowledge;
}

export function readsPartsOf({ options, database, knowledge, ...parts }: ServingParts): ReadsParts {
  const leases = knowledge === undefined ? {} : { leases: knowledge };
  return { ...parts, ...leases, tree: database.tree, multiReadBytesMax: options.multiReadBytesMax };
}

/** Why the server ends a session: it timed out, or an operator asked for it. */
export type EndCause = 'silence' | 'operator';

/** Ends the local sessions that have timed out. */
export function endDueSessions(local: LocalSessions, pipeline: Pipeline, trace: Trace, nowMs: number): void {
  local.onTick(nowMs);
  for (let session = local.takeDue(nowMs); session !== null; session = local.takeDue(nowMs)) {
    session.isClosing = true;
    trace.emit({ kind: 'session-expired', sessionId: session.id, timeoutMs: session.timeoutMs, isLocal: true });
    pipeline.onLocalSessionEnded(session);
  }
}

export function endLocalSession(session: Session, table: SessionTable, pipeline: Pipeline): void {
  session.isClosing = true;
  table.remove(session);
  pipeline.onLocalSessionEnded(session);
}

export interface LeaderServingParts extends ServingParts {
  readonly broadcast: Broadcast;
  /** Default: that of a standalone server. */
  readonly reconfigurer?: Reconfigurer;
  /** Default: no other server answers clients. */
  readonly leases?: SessionLeases;
}

/**
 * Sessions plus their ephemerals that expire in one turn; the last session may exceed it. Takes one or two
 * milliseconds, and as much again to apply.
 */
const EXPIRY_UNITS = 256;

/**
 * The volatile state of a standalone server or leader: it proposes txns and serves its own clients.
 *
 * Nothing is known about a session's last ping or the server that its client is connected to. So every session in the
 * database starts without an owner and with its full timeout, plus the time that servers of an earlier epoch may still
 * answer its client.
 */
export class LeaderServing {
  readonly database: Database;
  /** The replicated sessions. */
  readonly sessions: SessionTracker;
  /** null where local sessions are disabled. */
  readonly local: LocalSessions | null;
  /** All sessions that clients can resume here. */
  readonly table: SessionTable;
  readonly pipeline: Pipeline;
  readonly #proposer: Proposer;
  readonly #containers: ContainerSweep;
  readonly #leases: SessionLeases;
  /** Sessions that are due, but whose owner may have a ping of them that it has not yet reported. */
  readonly #awaited: Set<Session> = new Set();
  readonly #trace: Trace;
  readonly #meters: Meters;

  /** @param parts the database contains everything that is committed */
  constructor(parts: LeaderServingParts, nowMs: number) {
    const { options, database, permission, watches, sessionIds, trace, broadcast } = parts;
    const { tree } = database;
    // A leader or standalone server has applied every txn that its fuzzy snapshot may have contained in part.
    tree.exactFrom = Math.min(tree.exactFrom, tree.lastZxid);
    const pending = new PendingTree(tree, options.digestEnabled);
    const txnBytesMax = txnBytesMaxOf(options.frameBytesMax, options.extraBytesMax);
    const preparer = new Preparer(pending, permission, tree.quotas, { ...options, txnBytesMax });
    const sessions = new SessionTracker(options.tickTimeMs, nowMs);
    this.#leases = parts.leases ?? NO_LEASES;
    const sinceMs = nowMs + this.#leases.graceMs;
    for (const [id, timeoutMs] of database.sessions) sessions.add(new Session(id, timeoutMs), sinceMs);
    const { ensemble } = options;
    const hasLocal = ensemble?.localSessionsEnabled ?? false;
    const memoryMs = ensemble === null ? 0 : (ensemble.syncLimit + 2) * options.tickTimeMs * 2;
    const foreign = hasLocal ? new ForeignSessions(options.serverId, memoryMs, nowMs) : null;
    const local = hasLocal
      ? new LocalSessions({ replicated: sessions, sessionIds, foreign, tickMs: options.tickTimeMs }, nowMs)
      : null;
    this.local = local;
    this.table = local ?? sessions;
    this.database = database;
    this.sessions = sessions;
    const { reconfigurer = new NoReconfigurer(options.reconfigEnabled) } = parts;
    this.#proposer = new Proposer({
      pending,
      preparer,
      reconfigs: new ReconfigPreparer(pending, permission, reconfigurer),
      sessions,
      sessionIds,
      foreignSessions: foreign,
      broadcast,
      meters: parts.meters,
      work: parts.work,
      preparedPerTurn: parts.pace?.preparedPerTurn,
    });
    const isUpgrading = ensemble?.localSessionsUpgradingEnabled ?? false;
    this.pipeline = new Pipeline({
      database,
      reads: new Reads(readsPartsOf(parts)),
      watches,
      sessions: this.table,
      writes: parts.audit?.follow(this.#proposer) ?? this.#proposer,
      local,
      gate: local === null ? null : new UpgradeGate(local, this.#proposer, isUpgrading),
      audit: parts.audit ?? null,
      limits: parts.limits ?? null,
      work: parts.work,
      meters: parts.meters,
      trace,
      onApplied: parts.onApplied,
      ...(parts.pace === undefined ? {} : { pace: parts.pace }),
      committed: this.#proposer,
      lastSynced: broadcast.lastSynced,
    });
    this.#containers = new ContainerSweep(
      tree,
      {
        intervalMs: options.containerCheckIntervalMs,
        deletesPerMinuteMax: options.containerDeletesPerMinuteMax,
        neverUsedMs: options.containerNeverUsedMs,
      },
      nowMs,
    );
    this.#trace = trace;
    this.#meters = parts.meters;
  }

  /* ---------------------------------------------------------------------------------------- the broadcast ---- */

  /** Everything up to the watermark is committed: it is applied and answered in this turn or one of the next. */
  onCommitted(watermark: Committed<Zxid>, nowMs: number): void {
    this.pipeline.onCommitted(watermark, nowMs);
  }

  /** Every broadcast ticket up to this one is answered, and everything committed before is applied. */
  onSynced(ticket: number): void {
    this.pipeline.onSynced(ticket);
  }

  /* -------------------------------------------------------------------------------------------- learners ---- */

  /**
   * A request of a learner's client. Its outcome is a txn with the same session and xid, also when it fails.
   *
   * @param owner the learner's server id, 0 or more
   * @param onTicket called for a sync, which becomes no txn, with the broadcast ticket to wait for
   */
  onForwarded(
    owner: number,
    request: ForwardedRequestPacket,
    nowMs: number,
    wallMs: number,
    onTicket: (ticket: number) => void,
  ): void {
    if (request.op === OpCode.sync) this.#proposer.forwardedSync(onTicket);
    else this.#proposer.forwarded(owner, request, nowMs, wallMs);
  }

  /**
   * The client of a session has connected to a learner, with the right password.
   *
   * @param timeoutMs as negotiated by the learner
   * @returns false when there is no session to resume
   */
  revalidate(owner: number, sessionId: bigint, timeoutMs: number, nowMs: number): boolean {
    this.#meters.revalidations++;
    if (this.sessions.move(sessionId, owner, timeoutMs, nowMs) === null) return false;
    this.pipeline.clientOf(sessionId)?.closeAfterReplies(MOVED);
    return true;
  }

  /** A learner has received pings of these sessions. */
  touch(sessions: readonly SessionTimeout[], nowMs: number): void {
    for (const { sessionId } of sessions) {
      const session = this.sessions.get(sessionId);
      if (session !== undefined) this.sessions.touch(session, nowMs);
    }
  }

  /* ------------------------------------------------------------------------------------------------ time ---- */

  /** Monotonic milliseconds at which `onTick` has something to do, at the latest. */
  get nextDeadlineMs(): number {
    const localMs = this.local?.nextDeadlineMs ?? Number.POSITIVE_INFINITY;
    return Math.min(this.sessions.nextDeadlineMs, localMs, this.#containers.nextDeadlineMs);
  }

  /** Expires sessions, and deletes containers and TTL znodes that are due. */
  onTick(nowMs: number, wallMs: number): void {
    this.sessions.onTick(nowMs);
    this.#endAwaited(null, nowMs, wallMs);
    this.#expireSome(nowMs, wallMs);
    if (this.local !== null) endDueSessions(this.local, this.pipeline, this.#trace, nowMs);
    for (const path of this.#containers.onTick(nowMs, wallMs)) this.#proposer.collect(path, wallMs);
  }

  /** Ends a session now. @returns false when there is no such session */
  expireSession(id: bigint, wallMs: number, cause: EndCause = 'silence'): boolean {
    const session = this.table.get(id);
    if (session === undefined) return false;
    if (session.isLocal) endLocalSession(session, this.table, this.pipeline);
    else this.#expire(session, wallMs, cause);
    return true;
  }

  /** Deletes ephemerals of unknown sessions. Only a database that was edited or corrupted has any. */
  endOrphans(wallMs: number): void {
    for (const sessionId of [...this.database.tree.sessionsWithEphemerals()]) {
      if (!this.database.sessions.has(sessionId)) this.#proposer.endSession(sessionId, wallMs);
    }
  }

  /** The role is over: nothing that waits or is in flight is answered. The clients' connections are to be closed. */
  drop(): void {
    this.#proposer.drop();
    this.pipeline.drop();
  }

  /** The sessions that are left remain due: the next turn continues with them. */
  #expireSome(nowMs: number, wallMs: number): void {
    for (let units = 0; units < EXPIRY_UNITS; ) {
      const session = this.sessions.takeDue(nowMs);
      if (session === null) return;
      units += this.#unitsOf(session);
      if (this.#mayEnd(session, nowMs)) this.#expire(session, wallMs);
      else this.#awaited.add(session);
    }
  }

  /** A learner has answered a ping, and has reported the sessions whose clients sent pings. */
  onAnswered(serverId: number, nowMs: number, wallMs: number): void {
    this.#endAwaited(serverId, nowMs, wallMs);
  }

  /** @param owner null: of all learners */
  #endAwaited(owner: number | null, nowMs: number, wallMs: number): void {
    let units = 0;
    for (const session of this.#awaited) {
      if (units >= EXPIRY_UNITS) return;
      if (owner !== null && session.owner !== owner) continue;
      // A session that has been touched is due again later.
      const isAwaited = session.expiresAtMs === 0 && this.sessions.isLive(session.id);
      if (isAwaited && !this.#mayEnd(session, nowMs)) continue;
      this.#awaited.delete(session);
      if (!isAwaited) continue;
      units += this.#unitsOf(session);
      this.#expire(session, wallMs);
    }
  }

  #mayEnd({ owner, dueMs, timeoutMs }: Session, nowMs: number): boolean {
    return this.#leases.mayEnd(owner, dueMs, Math.max(timeoutMs, 0), nowMs);
  }

  #unitsOf(session: Session): number {
    return 1 + this.database.tree.ephemeralCountOf(session.id);
  }

  #expire(session: Session, wallMs: number, cause: EndCause = 'silence'): void {
    if (session.isClosing) return;
    this.sessions.setClosing(session);
    if (cause === 'silence') {
      this.#trace.emit({ kind: 'session-expired', sessionId: session.id, timeoutMs: session.timeoutMs });
    }
    this.#proposer.endSession(session.id, wallMs);
  }
}
