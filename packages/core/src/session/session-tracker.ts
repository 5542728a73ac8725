import { ErrorCode } from '@meerkat/protocol';
import type { ConnectDecision } from './connect-decision.ts';
import { formatSessionId, type Session, SessionOwner } from './session.ts';
import type { ExpiryBucket, SessionTable } from './session-table.ts';

/**
 * Decides when sessions expire and which server owns them (SessionTrackerImpl, ExpiryQueue). Used by a standalone
 * server, and by the leader for all servers.
 *
 * Sessions are kept in buckets, one per tick: a session that is due at t expires at the first multiple of the tick
 * after t. Touching a session again within the same tick costs one comparison.
 *
 * A session never expires before its timeout has passed since the last touch, and normally at most one tick later. It
 * may be later when many are due together: they are ended in parts, and a session that is touched meanwhile stays
 * alive.
 */
export class SessionTracker implements SessionTable {
  readonly #tickMs: number;
  readonly #sessions = new Map<bigint, Session>();
  readonly #buckets = new Map<number, Set<Session>>();
  /** The next bucket to process; all earlier ones are empty. */
  #nextBucketMs: number;
  /** The contents of that bucket when it became due; sessions touched since are in another one. */
  #due: readonly Session[] = NONE;
  #dueTaken = 0;
  #lastTickMs: number;

  /** @param tickMs length of a tick in milliseconds */
  constructor(tickMs: number, nowMs: number) {
    this.#tickMs = tickMs;
    this.#nextBucketMs = this.#bucketAfter(nowMs);
    this.#lastTickMs = nowMs;
  }

  get count(): number {
    return this.#sessions.size;
  }

  get(id: bigint): Session | undefined {
    return this.#sessions.get(id);
  }

  isTaken(id: bigint): boolean {
    return this.#sessions.has(id);
  }

  /** All known sessions, including closing ones. */
  values(): IterableIterator<Session> {
    return this.#sessions.values();
  }

  /** False for closing and for unknown sessions. */
  isLive(id: bigint): boolean {
    return this.#sessions.get(id)?.isClosing === false;
  }

  add(session: Session, nowMs: number): void {
    this.#sessions.set(session.id, session);
    session.expiresAtMs = 0;
    this.touch(session, nowMs);
  }

  remove(session: Session): void {
    this.#sessions.delete(session.id);
    this.#leaveBucket(session);
  }

  /**
   * Admits a request that a learner has forwarded for a session. The learner becomes the owner if there is none.
   *
   * @param owner the learner's server id
   * @returns ok; sessionExpired when it is unknown or closing, sessionMoved when its client is at another server
   */
  admit(id: bigint, owner: number): ErrorCode {
    const session = this.#sessions.get(id);
    if (session === undefined || session.isClosing) return ErrorCode.sessionExpired;
    if (session.owner === SessionOwner.none) session.owner = owner;
    return session.owner === owner ? ErrorCode.ok : ErrorCode.sessionMoved;
  }

  /** The client has connected to a server, with a new timeout. @returns null when there is no session to resume */
  move(id: bigint, owner: number, timeoutMs: number, nowMs: number): Session | null {
    const session = this.#sessions.get(id);
    if (session === undefined || session.isClosing) return null;
    session.owner = owner;
    this.setTimeoutMs(session, timeoutMs, nowMs);
    return session;
  }

  resume(id: bigint, timeoutMs: number, nowMs: number): ConnectDecision {
    const session = this.move(id, SessionOwner.local, timeoutMs, nowMs);
    if (session !== null) return { kind: 'resume', session };
    const state = this.#sessions.has(id) ? 'is closing' : 'is unknown or has expired';
    return { kind: 'refuse', reason: `session ${formatSessionId(id)} ${state}` };
  }

  /** Restarts the session's timeout, unless it is closing. */
  touch(session: Session, nowMs: number): true {
    if (session.isClosing) return true;
    // An invalid timeout may come from another server or from a log; it must not make the session live forever.
    session.dueMs = nowMs + Math.max(session.timeoutMs, 0);
    const expiresAtMs = this.#bucketAfter(session.dueMs);
    if (expiresAtMs <= session.expiresAtMs) return true;
    this.#leaveBucket(session);
    session.expiresAtMs = expiresAtMs;
    const bucket = this.#buckets.get(expiresAtMs);
    if (bucket === undefined) this.#buckets.set(expiresAtMs, new Set([session]));
    else bucket.add(session);
    return true;
  }

  /** A closing session no longer expires; it is removed when its closeSession is applied. */
  setClosing(session: Session): void {
    session.isClosing = true;
    this.#leaveBucket(session);
  }

  /** Sets a new timeout, which may be shorter, and restarts it. */
  setTimeoutMs(session: Session, timeoutMs: number, nowMs: number): void {
    session.timeoutMs = timeoutMs;
    this.#leaveBucket(session);
    session.expiresAtMs = 0;
    this.touch(session, nowMs);
  }

  get nextDeadlineMs(): number {
    return this.#nextBucketMs;
  }

  /**
   * Called before sessions are taken.
   *
   * If this process was suspended, what its clients have sent meanwhile is still in kernel buffers. So a tick that
   * comes more than half a tick late expires no session: the clients get one more tick.
   */
  onTick(nowMs: number): void {
    const lateMs = nowMs - this.#lastTickMs;
    this.#lastTickMs = nowMs;
    if (nowMs >= this.#nextBucketMs && lateMs > 1.5 * this.#tickMs) this.#postponeDueBuckets(nowMs);
  }

  /** Takes a session whose bucket is due; it stays known until `remove`. @returns null when none is due */
  takeDue(nowMs: number): Session | null {
    for (; this.#nextBucketMs <= nowMs; this.#nextBucketMs += this.#tickMs) {
      const bucket = this.#buckets.get(this.#nextBucketMs) ?? EMPTY;
      // Copied, because taking sessions one by one from the front of a Set visits all deleted entries each time.
      if (this.#dueTaken === 0) this.#due = [...bucket];
      while (this.#dueTaken < this.#due.length) {
        const session = this.#due[this.#dueTaken++]!;
        if (!bucket.delete(session)) continue;
        session.expiresAtMs = 0;
        return session;
      }
      this.#forgetDue();
      this.#buckets.delete(this.#nextBucketMs);
    }
    return null;
  }

  #forgetDue(): void {
    this.#due = NONE;
    this.#dueTaken = 0;
  }

  /** Non-empty buckets, earliest first. */
  buckets(): readonly ExpiryBucket[] {
    return [...this.#buckets]
      .filter(([, sessions]) => sessions.size > 0)
      .sort(([a], [b]) => a - b)
      .map(([expiresAtMs, sessions]) => ({ expiresAtMs, sessions: [...sessions] }));
  }

  #postponeDueBuckets(nowMs: number): void {
    this.#forgetDue();
    const graceMs = this.#bucketAfter(nowMs + this.#tickMs);
    const grace = this.#buckets.get(graceMs) ?? new Set<Session>();
    for (; this.#nextBucketMs <= nowMs; this.#nextBucketMs += this.#tickMs) {
      for (const session of this.#buckets.get(this.#nextBucketMs) ?? []) {
        session.expiresAtMs = graceMs;
        grace.add(session);
      }
      this.#buckets.delete(this.#nextBucketMs);
    }
    if (grace.size > 0) this.#buckets.set(graceMs, grace);
  }

  #leaveBucket(session: Session): void {
    const bucket = this.#buckets.get(session.expiresAtMs);
    if (bucket === undefined) return;
    bucket.delete(session);
    if (bucket.size === 0) this.#buckets.delete(session.expiresAtMs);
  }

  #bucketAfter(ms: number): number {
    return (Math.floor(ms / this.#tickMs) + 1) * this.#tickMs;
  }
}

const NONE: readonly Session[] = [];
const EMPTY: Set<Session> = new Set();
