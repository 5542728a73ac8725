import type { RevalidateRequestPacket, SessionTimeout } from '@meerkat/protocol';
import { withinAnyClock } from '../base/clock-drift.ts';
import type { ConnectDecision } from './connect-decision.ts';
import { Revalidations } from './revalidations.ts';
import { Session } from './session.ts';
import type { ExpiryBucket, SessionTable } from './session-table.ts';

/**
 * The sessions on a learner (LearnerSessionTracker). The leader decides when they expire; the learner reports to it
 * which sessions were touched, and asks it about sessions that are resumed.
 */
export class LearnerSessions implements SessionTable {
  readonly revalidations: Revalidations;
  /** Timeouts in milliseconds of all sessions that exist according to the applied txns. */
  readonly #replicated: ReadonlyMap<bigint, number>;
  /** Sessions whose clients are or were connected here. */
  readonly #connected = new Map<bigint, Session>();
  /** Sessions touched since the last report, without duplicates: those with `isTouched`. */
  #touched: Session[] = [];
  /** When the last report was sent to the leader; −Infinity before the first one. */
  #reportedMs = Number.NEGATIVE_INFINITY;
  /** The leader waits for this server's report before it expires a session of its clients: see docs/leases.md. */
  holdsLeases = false;
  /** Timeouts in milliseconds of sessions that were reported by observers connected to this server. */
  #relayed = new Map<bigint, number>();

  /** @param ask sends the question about a session to the leader */
  constructor(replicated: ReadonlyMap<bigint, number>, ask: (packet: RevalidateRequestPacket) => void) {
    this.#replicated = replicated;
    this.revalidations = new Revalidations(this, ask);
  }

  get count(): number {
    return this.#replicated.size;
  }

  /** Only sessions of this learner's clients. */
  get(id: bigint): Session | undefined {
    return this.#connected.get(id);
  }

  *values(): IterableIterator<Session> {
    for (const [id, timeoutMs] of this.#replicated) yield this.#connected.get(id) ?? new Session(id, timeoutMs);
  }

  isTaken(id: bigint): boolean {
    return this.#replicated.has(id) || this.#connected.has(id);
  }

  /** A local session is being created as a replicated one. */
  adopt(session: Session, nowMs: number): void {
    this.#connected.set(session.id, session);
    this.#markTouched(session, nowMs);
  }

  /**
   * Adds the session of a client that is connected here from now on, after it was created or revalidated by the leader.
   *
   * @param nowMs when the leader was asked: the leader starts the timeout later
   */
  open(id: bigint, timeoutMs: number, nowMs: number): Session {
    const session = this.#connected.get(id) ?? new Session(id, timeoutMs);
    this.#connected.set(id, session);
    session.timeoutMs = timeoutMs;
    // A closeSession that was sent after the client had moved to another server has been refused.
    session.isClosing = false;
    this.#markTouched(session, nowMs);
    return session;
  }

  touch(session: Session, nowMs: number): boolean {
    // A touch after a report counts as later than the report, even in a turn that began before it.
    const touchedMs = Math.max(nowMs, this.#reportedMs);
    if (this.holdsLeases && touchedMs >= session.expiresAtMs) return false;
    this.#markTouched(session, touchedMs);
    return true;
  }

  #markTouched(session: Session, touchedMs: number): void {
    session.expiresAtMs = touchedMs + withinAnyClock(session.timeoutMs);
    if (session.isTouched) return;
    session.isTouched = true;
    this.#touched.push(session);
  }

  /**
   * Returns the sessions touched since the last call, for the reply to the leader's ping.
   *
   * @param countMax further sessions are left for the next reply, where they come first; see `endsWithItsFirst`
   * @param nowMs read after the ping was received
   */
  takeTouched(countMax: number, nowMs: number): readonly SessionTimeout[] {
    this.#reportedMs = nowMs;
    const isComplete = this.#touched.length <= countMax;
    const touched = isComplete ? this.#touched : this.#touched.slice(0, this.holdsLeases ? countMax - 1 : countMax);
    this.#touched = this.#touched.slice(touched.length);
    const reported = touched.map((session) => {
      session.isTouched = false;
      return { sessionId: session.id, timeoutMs: session.timeoutMs };
    });
    if (!isComplete && this.holdsLeases) reported.push(reported[0]!);
    else this.#addRelayed(reported, countMax);
    return reported;
  }

  #addRelayed(reported: SessionTimeout[], countMax: number): void {
    // A reply that ends with its first session is marked as incomplete.
    if (reported.length > 0) this.#relayed.delete(reported[0]!.sessionId);
    for (const [sessionId, timeoutMs] of this.#relayed) {
      if (reported.length >= countMax) return;
      reported.push({ sessionId, timeoutMs });
      this.#relayed.delete(sessionId);
    }
  }

  /** An observer connected to this server has reported these as touched. */
  relayTouched(sessions: readonly SessionTimeout[]): void {
    for (const { sessionId, timeoutMs } of sessions) this.#relayed.set(sessionId, timeoutMs);
  }

  setClosing(session: Session): void {
    session.isClosing = true;
  }

  remove(session: Session): void {
    this.#connected.delete(session.id);
  }

  resume(_id: bigint, timeoutMs: number): ConnectDecision {
    return { kind: 'revalidate', timeoutMs, revalidations: this.revalidations };
  }

  buckets(): readonly ExpiryBucket[] {
    return NONE;
  }
}

const NONE: readonly ExpiryBucket[] = [];
