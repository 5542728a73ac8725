import type { RevalidateRequestPacket, SessionTimeout } from '@meerkat/protocol';
import type { ConnectDecision } from './connect-decision.ts';
import { Revalidations } from './revalidations.ts';
import { Session } from './session.ts';
import type { ExpiryBucket, SessionTable } from './session-table.ts';

/**
 * The sessions on a learner (LearnerSessionTracker). The leader decides when they end; the learner tells it which of
 * its clients were heard of, and asks it about those that come back.
 */
export class LearnerSessions implements SessionTable {
  readonly revalidations: Revalidations;
  /** Timeout in milliseconds of every session that was created and not closed, as far as txns are applied. */
  readonly #replicated: ReadonlyMap<bigint, number>;
  /** Those whose clients are or were connected here. */
  readonly #local = new Map<bigint, Session>();
  /** Each once: `isHeard` says who is in it. */
  #heard: Session[] = [];

  /** @param ask sends the question about a session to the leader */
  constructor(replicated: ReadonlyMap<bigint, number>, ask: (packet: RevalidateRequestPacket) => void) {
    this.#replicated = replicated;
    this.revalidations = new Revalidations(this, ask);
  }

  get count(): number {
    return this.#replicated.size;
  }

  /** Only those of this learner's clients. */
  get(id: bigint): Session | undefined {
    return this.#local.get(id);
  }

  *values(): IterableIterator<Session> {
    for (const [id, timeoutMs] of this.#replicated) yield this.#local.get(id) ?? new Session(id, timeoutMs);
  }

  /** True for an id that may not be given to a new session. */
  isTaken(id: bigint): boolean {
    return this.#replicated.has(id) || this.#local.has(id);
  }

  /** The session of a client that is connected here from now on; it was created, or the leader has said that it lives. */
  open(id: bigint, timeoutMs: number, nowMs: number): Session {
    const session = this.#local.get(id) ?? new Session(id, timeoutMs);
    this.#local.set(id, session);
    session.timeoutMs = timeoutMs;
    // An end that was asked for when the session's client was already elsewhere has been refused.
    session.isClosing = false;
    this.touch(session, nowMs);
    return session;
  }

  touch(session: Session, nowMs: number): void {
    session.expiresAtMs = nowMs + session.timeoutMs;
    if (session.isHeard) return;
    session.isHeard = true;
    this.#heard.push(session);
  }

  /**
   * Sessions that were heard of since the last call, for the answer to the leader's ping.
   *
   * @param countMax more than that wait for the next one, and come first there
   */
  takeTouched(countMax: number): readonly SessionTimeout[] {
    const heard = this.#heard.length > countMax ? this.#heard.slice(0, countMax) : this.#heard;
    this.#heard = this.#heard.slice(heard.length);
    return heard.map((session) => {
      session.isHeard = false;
      return { sessionId: session.id, timeoutMs: session.timeoutMs };
    });
  }

  setClosing(session: Session): void {
    session.isClosing = true;
  }

  remove(session: Session): void {
    this.#local.delete(session.id);
  }

  resume(_id: bigint, timeoutMs: number): ConnectDecision {
    return { kind: 'revalidate', timeoutMs, revalidations: this.revalidations };
  }

  buckets(): readonly ExpiryBucket[] {
    return NONE;
  }
}

const NONE: readonly ExpiryBucket[] = [];
