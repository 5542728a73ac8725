import type { RevalidateRequestPacket, SessionTimeout } from '@meerkat/protocol';
import { withinAnyClock } from '../base/clock-drift.ts';
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
  readonly #connected = new Map<bigint, Session>();
  /** Each once: `isHeard` says who is in it. */
  #heard: Session[] = [];
  /** When the leader was told last; −Infinity before, and where no leases are held. */
  #toldMs = Number.NEGATIVE_INFINITY;
  /** The leader waits for this server's word before it ends a session of its clients: see docs/leases.md. */
  holdsLeases = false;
  /** Timeout in milliseconds of sessions that observers behind this server have heard of. */
  #relayed = new Map<bigint, number>();

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
    return this.#connected.get(id);
  }

  *values(): IterableIterator<Session> {
    for (const [id, timeoutMs] of this.#replicated) yield this.#connected.get(id) ?? new Session(id, timeoutMs);
  }

  isTaken(id: bigint): boolean {
    return this.#replicated.has(id) || this.#connected.has(id);
  }

  /** A session that was this server's alone is being created. */
  adopt(session: Session, nowMs: number): void {
    this.#connected.set(session.id, session);
    this.#onHeard(session, nowMs);
  }

  /**
   * The session of a client that is connected here from now on; it was created, or the leader has said that it lives.
   *
   * @param nowMs when the leader was asked: it counts from later on
   */
  open(id: bigint, timeoutMs: number, nowMs: number): Session {
    const session = this.#connected.get(id) ?? new Session(id, timeoutMs);
    this.#connected.set(id, session);
    session.timeoutMs = timeoutMs;
    // An end that was asked for when the session's client was already elsewhere has been refused.
    session.isClosing = false;
    this.#onHeard(session, nowMs);
    return session;
  }

  touch(session: Session, nowMs: number): boolean {
    // What is heard after an answer to the leader is later than that, also in a turn that had begun before.
    const heardMs = Math.max(nowMs, this.#toldMs);
    if (this.holdsLeases && heardMs >= session.expiresAtMs) return false;
    this.#onHeard(session, heardMs);
    return true;
  }

  #onHeard(session: Session, heardMs: number): void {
    session.expiresAtMs = heardMs + withinAnyClock(session.timeoutMs);
    if (session.isHeard) return;
    session.isHeard = true;
    this.#heard.push(session);
  }

  /**
   * Sessions that were heard of since the last call, for the answer to the leader's ping.
   *
   * @param countMax more than that wait for the next one, and come first there; see `endsWithItsFirst`
   * @param nowMs read after the ping had come
   */
  takeTouched(countMax: number, nowMs: number): readonly SessionTimeout[] {
    this.#toldMs = nowMs;
    const isComplete = this.#heard.length <= countMax;
    const heard = isComplete ? this.#heard : this.#heard.slice(0, this.holdsLeases ? countMax - 1 : countMax);
    this.#heard = this.#heard.slice(heard.length);
    const told = heard.map((session) => {
      session.isHeard = false;
      return { sessionId: session.id, timeoutMs: session.timeoutMs };
    });
    if (!isComplete && this.holdsLeases) told.push(told[0]!);
    else this.#tellRelayed(told, countMax);
    return told;
  }

  #tellRelayed(told: SessionTimeout[], countMax: number): void {
    // An answer that ends with its first one says that it is not complete.
    if (told.length > 0) this.#relayed.delete(told[0]!.sessionId);
    for (const [sessionId, timeoutMs] of this.#relayed) {
      if (told.length >= countMax) return;
      told.push({ sessionId, timeoutMs });
      this.#relayed.delete(sessionId);
    }
  }

  /** An observer behind this server has heard of these. */
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
