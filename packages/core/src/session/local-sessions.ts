import type { ConnectDecision } from './connect-decision.ts';
import type { ForeignSessions } from './foreign-sessions.ts';
import { Session, SessionOwner } from './session.ts';
import type { SessionIds } from './session-ids.ts';
import type { ExpiryBucket, SessionTable } from './session-table.ts';
import { SessionTracker } from './session-tracker.ts';

export interface LocalSessionsParts {
  /** The replicated sessions. */
  readonly replicated: SessionTable;
  readonly sessionIds: SessionIds;
  /** On a leader only. */
  readonly foreign?: ForeignSessions | null;
  /** Length of a tick in milliseconds. */
  readonly tickMs: number;
}

/**
 * Sessions that only this server knows (`localSessionsEnabled`, UpgradeableSessionTracker): they are in no txn, expire
 * by this server's clock, and end with its role. Calls for replicated sessions are delegated to `replicated`.
 */
export class LocalSessions implements SessionTable {
  readonly #tracker: SessionTracker;
  readonly #replicated: SessionTable;
  readonly #sessionIds: SessionIds;
  readonly #foreign: ForeignSessions | null;

  constructor({ replicated, sessionIds, foreign = null, tickMs }: LocalSessionsParts, nowMs: number) {
    this.#tracker = new SessionTracker(tickMs, nowMs);
    this.#replicated = replicated;
    this.#sessionIds = sessionIds;
    this.#foreign = foreign;
  }

  create(timeoutMs: number, nowMs: number): Session {
    const id = this.#sessionIds.next((taken) => this.isTaken(taken));
    const session = new Session(id, timeoutMs);
    session.isLocal = true;
    session.owner = SessionOwner.local;
    this.#tracker.add(session, nowMs);
    return session;
  }

  /** The session is a replicated one from now on; the caller must create it there. */
  release(session: Session): void {
    this.#tracker.remove(session);
    session.isLocal = false;
  }

  /** Local sessions, including those that are due. */
  get localCount(): number {
    return this.#tracker.count;
  }

  localBuckets(): readonly ExpiryBucket[] {
    return this.#tracker.buckets();
  }

  /** Monotonic milliseconds. */
  get nextDeadlineMs(): number {
    return this.#tracker.nextDeadlineMs;
  }

  onTick(nowMs: number): void {
    this.#tracker.onTick(nowMs);
    this.#foreign?.onTick(nowMs);
  }

  /** Removes and returns a local session that has timed out; null when there is none. */
  takeDue(nowMs: number): Session | null {
    const session = this.#tracker.takeDue(nowMs);
    if (session !== null) this.#tracker.remove(session);
    return session;
  }

  /* ------------------------------------------------------------------------------------------ of both kinds ---- */

  get count(): number {
    return this.#tracker.count + this.#replicated.count;
  }

  get(id: bigint): Session | undefined {
    return this.#tracker.get(id) ?? this.#replicated.get(id);
  }

  isTaken(id: bigint): boolean {
    return this.#tracker.get(id) !== undefined || this.#replicated.isTaken(id);
  }

  *values(): IterableIterator<Session> {
    yield* this.#tracker.values();
    yield* this.#replicated.values();
  }

  touch(session: Session, nowMs: number): boolean {
    return (session.isLocal ? this.#tracker : this.#replicated).touch(session, nowMs);
  }

  setClosing(session: Session): void {
    (session.isLocal ? this.#tracker : this.#replicated).setClosing(session);
  }

  remove(session: Session): void {
    (session.isLocal ? this.#tracker : this.#replicated).remove(session);
    if (!session.isLocal) this.#foreign?.onEnded(session.id);
  }

  resume(id: bigint, timeoutMs: number, nowMs: number): ConnectDecision {
    const session = this.#tracker.move(id, SessionOwner.local, timeoutMs, nowMs);
    return session === null ? this.#replicated.resume(id, timeoutMs, nowMs) : { kind: 'resume', session };
  }

  /** Buckets of the replicated sessions. */
  buckets(): readonly ExpiryBucket[] {
    return this.#replicated.buckets();
  }
}
