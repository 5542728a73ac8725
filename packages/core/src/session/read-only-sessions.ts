import type { Database } from '../tree/database.ts';
import type { ConnectDecision } from './connect-decision.ts';
import { formatSessionId, Session, SessionOwner } from './session.ts';
import { serverIdOf } from './session-ids.ts';
import type { ExpiryBucket, SessionTable } from './session-table.ts';
import { SessionTracker } from './session-tracker.ts';

/**
 * The replicated sessions on a server without a leader. It knows the sessions in its log, but not whether they are
 * still alive.
 *
 * 1. A client may resume its session here to read. That does not keep the session alive: it expires if the leader gets
 *    no pings of it, and the client learns that when it reconnects to a server with a quorum.
 * 2. A session with ephemerals cannot be resumed: its connected client would rely on owning them, although the session
 *    may have expired long ago. Apache's server resumes no sessions at all.
 */
export class ReadOnlySessions implements SessionTable {
  readonly #serverId: number;
  readonly #logsTxns: boolean;
  readonly #database: Database;
  readonly #connected: SessionTracker;

  /** @param logsTxns false for an observer that does not log (`syncEnabled=false`) */
  constructor(serverId: number, logsTxns: boolean, database: Database, tickMs: number, nowMs: number) {
    this.#serverId = serverId;
    this.#logsTxns = logsTxns;
    this.#database = database;
    this.#connected = new SessionTracker(tickMs, nowMs);
  }

  get count(): number {
    return this.#database.sessions.size;
  }

  get(id: bigint): Session | undefined {
    return this.#connected.get(id);
  }

  *values(): IterableIterator<Session> {
    for (const [id, timeoutMs] of this.#database.sessions) yield this.#connected.get(id) ?? new Session(id, timeoutMs);
  }

  isTaken(id: bigint): boolean {
    return this.#database.sessions.has(id) || this.#connected.isTaken(id);
  }

  touch(session: Session, nowMs: number): boolean {
    return this.#connected.touch(session, nowMs);
  }

  setClosing(session: Session): void {
    this.#connected.setClosing(session);
  }

  remove(session: Session): void {
    this.#connected.remove(session);
  }

  resume(id: bigint, timeoutMs: number, nowMs: number): ConnectDecision {
    const name = formatSessionId(id);
    if (!this.#database.sessions.has(id)) {
      // Sessions that the ensemble has, and that this server created, are in its log if it has one: this one has ended,
      // or was local to an earlier incarnation. A session of another server may still be alive.
      const wouldKnow = this.#logsTxns && serverIdOf(id) === this.#serverId;
      if (wouldKnow) return { kind: 'refuse', reason: `session ${name} has ended` };
      return { kind: 'close', reason: `session ${name} is unknown to this server, which is read-only` };
    }
    if (this.#database.tree.ephemeralCountOf(id) > 0) {
      return { kind: 'close', reason: `session ${name} has ephemerals, and this server is read-only` };
    }
    const known = this.#connected.move(id, SessionOwner.local, timeoutMs, nowMs);
    if (known !== null) return { kind: 'resume', session: known };
    const session = new Session(id, timeoutMs);
    session.owner = SessionOwner.local;
    this.#connected.add(session, nowMs);
    return { kind: 'resume', session };
  }

  buckets(): readonly ExpiryBucket[] {
    return NONE;
  }

  /** Monotonic milliseconds. */
  get nextDeadlineMs(): number {
    return this.#connected.nextDeadlineMs;
  }

  /** @param onSilent called with the id of each session that has timed out */
  onTick(nowMs: number, onSilent: (id: bigint) => void): void {
    this.#connected.onTick(nowMs);
    for (let due = this.#connected.takeDue(nowMs); due !== null; due = this.#connected.takeDue(nowMs)) {
      this.#connected.remove(due);
      onSilent(due.id);
    }
  }
}

const NONE: readonly ExpiryBucket[] = [];
