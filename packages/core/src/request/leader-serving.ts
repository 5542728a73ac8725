import { type ForwardedRequestPacket, OpCode, type SessionTimeout, txnBytesMaxOf, type Zxid } from '@meerkat/protocol';
import type { Meters } from '../base/meters/meters.ts';
import type { CoreOptions } from '../base/options.ts';
import type { Authenticator, Trace } from '../base/ports.ts';
import { Session } from '../session/session.ts';
import type { SessionIds } from '../session/session-ids.ts';
import { SessionTracker } from '../session/session-tracker.ts';
import type { Database } from '../tree/database.ts';
import type { WatchManager } from '../watch/watch-manager.ts';
import type { Broadcast } from '../zab/broadcast.ts';
import type { Committed } from '../zab/committed.ts';
import type { PaceLimits } from './apply-pace.ts';
import type { AuditTrail } from './audit-trail.ts';
import { ContainerSweep } from './container-sweep.ts';
import { PendingTree } from './pending.ts';
import type { Permission } from './permission.ts';
import { type OnApplied, Pipeline } from './pipeline.ts';
import { Preparer } from './prepare.ts';
import { Proposer } from './proposer.ts';
import { Reads, type ReadsParts } from './read.ts';
import type { WorkMeter } from './work-meter.ts';
import { MOVED } from './write-path.ts';

/** What serving clients is made of, whatever the role. */
export interface ServingParts {
  readonly options: CoreOptions;
  readonly database: Database;
  readonly permission: Permission;
  readonly authenticator: Authenticator;
  readonly watches: WatchManager;
  /** Lives as long as the server: no id may come twice, also in another role. */
  readonly sessionIds: SessionIds;
  readonly work: WorkMeter;
  readonly meters: Meters;
  readonly trace: Trace;
  /** null: nobody looks. */
  readonly onApplied: OnApplied | null;
  /** As in `PipelineParts`. */
  readonly pace?: PaceLimits;
  readonly audit?: AuditTrail | null;
}

export function readsPartsOf({ options, database, ...parts }: ServingParts): ReadsParts {
  return { ...parts, tree: database.tree, multiReadBytesMax: options.multiReadBytesMax };
}

export interface LeaderServingParts extends ServingParts {
  readonly broadcast: Broadcast;
}

/** Sessions and ephemerals of theirs that expire in one turn, and the last one's: a millisecond or two, and as much when it is applied. */
const EXPIRY_UNITS = 256;

/**
 * A server that proposes, alone or as the leader of others, and serves its own clients: the volatile state of this role.
 *
 * Every session of the database has its whole timeout from now on, and no owner: nothing is known about when its client
 * was heard of, nor where it is.
 */
export class LeaderServing {
  readonly database: Database;
  readonly sessions: SessionTracker;
  readonly pipeline: Pipeline;
  readonly #proposer: Proposer;
  readonly #containers: ContainerSweep;
  readonly #trace: Trace;
  readonly #meters: Meters;

  /** @param parts the database holds everything that is committed */
  constructor(parts: LeaderServingParts, nowMs: number) {
    const { options, database, permission, watches, sessionIds, trace, broadcast } = parts;
    const { tree } = database;
    // Whoever leads, or is alone, has applied all that any snapshot of its was ahead by.
    tree.exactFrom = Math.min(tree.exactFrom, tree.lastZxid);
    const pending = new PendingTree(tree, options.digestEnabled);
    const txnBytesMax = txnBytesMaxOf(options.frameBytesMax, options.extraBytesMax);
    const preparer = new Preparer(pending, permission, tree.quotas, { ...options, txnBytesMax });
    const sessions = new SessionTracker(options.tickTimeMs, nowMs);
    for (const [id, timeoutMs] of database.sessions) sessions.add(new Session(id, timeoutMs), nowMs);
    this.database = database;
    this.sessions = sessions;
    this.#proposer = new Proposer({
      pending,
      preparer,
      sessions,
      sessionIds,
      broadcast,
      meters: parts.meters,
      preparedPerTurn: parts.pace?.preparedPerTurn,
    });
    this.pipeline = new Pipeline({
      database,
      reads: new Reads(readsPartsOf(parts)),
      watches,
      sessions,
      writes: parts.audit?.follow(this.#proposer) ?? this.#proposer,
      audit: parts.audit ?? null,
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

  /** Everything up to here is committed: it is applied and answered, in this turn or in one of the next. */
  onCommitted(watermark: Committed<Zxid>, nowMs: number): void {
    this.pipeline.onCommitted(watermark, nowMs);
  }

  /** Every ticket of the broadcast up to this one is answered, and everything committed before is applied. */
  onSynced(ticket: number): void {
    this.pipeline.onSynced(ticket);
  }

  /* -------------------------------------------------------------------------------------------- learners ---- */

  /**
   * A learner's client asks for something. What comes of it is a txn with the same session and xid, also when it fails.
   *
   * @param owner the learner's server id, 0 or more
   * @returns of a sync, which becomes no txn, the ticket of the broadcast that is to be answered; otherwise null
   */
  onForwarded(owner: number, request: ForwardedRequestPacket, nowMs: number, wallMs: number): number | null {
    if (request.op === OpCode.sync) return this.#proposer.forwardedSync();
    this.#proposer.forwarded(owner, request, nowMs, wallMs);
    return null;
  }

  /**
   * The client of a session is connected to a learner, and has shown its password there.
   *
   * @param timeoutMs as the learner has negotiated it
   * @returns false when there is no session to go on with
   */
  revalidate(owner: number, sessionId: bigint, timeoutMs: number, nowMs: number): boolean {
    this.#meters.revalidations++;
    if (this.sessions.move(sessionId, owner, timeoutMs, nowMs) === null) return false;
    this.pipeline.clientOf(sessionId)?.closeAfterReplies(MOVED);
    return true;
  }

  /** A learner has heard of these sessions. */
  touch(sessions: readonly SessionTimeout[], nowMs: number): void {
    for (const { sessionId } of sessions) {
      const session = this.sessions.get(sessionId);
      if (session !== undefined) this.sessions.touch(session, nowMs);
    }
  }

  /* ------------------------------------------------------------------------------------------------ time ---- */

  /** Monotonic milliseconds at which `onTick` has something to do, at the latest. */
  get nextDeadlineMs(): number {
    return Math.min(this.sessions.nextDeadlineMs, this.#containers.nextDeadlineMs);
  }

  /** Ends sessions that nothing was heard of, and collects containers and TTL znodes. */
  onTick(nowMs: number, wallMs: number): void {
    this.sessions.onTick(nowMs);
    this.#expireSome(nowMs, wallMs);
    for (const path of this.#containers.onTick(nowMs, wallMs)) this.#proposer.collect(path, wallMs);
  }

  /** Ends a session now, as if nothing had been heard of it for its timeout. @returns false when there is no such session */
  expireSession(id: bigint, wallMs: number): boolean {
    const session = this.sessions.get(id);
    if (session === undefined) return false;
    this.#expire(session, wallMs);
    return true;
  }

  /** An ephemeral whose session is unknown can only come from a database that was edited or damaged. */
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

  /** What is left is due still: the next turn goes on with it. */
  #expireSome(nowMs: number, wallMs: number): void {
    for (let units = 0; units < EXPIRY_UNITS; ) {
      const session = this.sessions.takeDue(nowMs);
      if (session === null) return;
      units += 1 + this.database.tree.ephemeralCountOf(session.id);
      this.#expire(session, wallMs);
    }
  }

  #expire(session: Session, wallMs: number): void {
    if (session.isClosing) return;
    this.sessions.setClosing(session);
    this.#trace.emit({ kind: 'session-expired', sessionId: session.id, timeoutMs: session.timeoutMs });
    this.#proposer.endSession(session.id, wallMs);
  }
}
