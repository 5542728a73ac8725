import { ErrorCode } from '@meerkat/protocol';
import { formatSessionId, type Session, SessionOwner } from './session.ts';
import type { ConnectDecision } from './session-door.ts';
import type { ExpiryBucket, SessionTable } from './session-table.ts';

/**
 * Decides when sessions expire, and who may speak for them (SessionTrackerImpl, ExpiryQueue). Kept by the server that
 * proposes: alone, or as the leader for all servers.
 *
 * Sessions stand in buckets, one per tick: a session that must be heard of by t expires at the first multiple of the
 * tick that is later than t. Touching a session within the same tick costs one comparison.
 *
 * A session never expires before its timeout has passed since it was last heard of, and at most one tick later.
 */
export class SessionTracker implements SessionTable {
  readonly #tickMs: number;
  readonly #sessions = new Map<bigint, Session>();
  readonly #buckets = new Map<number, Set<Session>>();
  /** The next bucket to look at; every earlier one has been emptied. */
  #nextBucketMs: number;
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

  /** Every session that is known, those that are closing among them. */
  values(): IterableIterator<Session> {
    return this.#sessions.values();
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
   * A learner asks something for a session. One that nobody has spoken for is the learner's from now on.
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

  /** The session's client is connected to a server, with a new timeout. @returns null when there is no session to go on with */
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

  /** Something was heard of the session; its whole timeout begins anew, unless it is closing. */
  touch(session: Session, nowMs: number): void {
    if (session.isClosing) return;
    const expiresAtMs = this.#bucketAfter(nowMs + session.timeoutMs);
    if (expiresAtMs <= session.expiresAtMs) return;
    this.#leaveBucket(session);
    session.expiresAtMs = expiresAtMs;
    const bucket = this.#buckets.get(expiresAtMs);
    if (bucket === undefined) this.#buckets.set(expiresAtMs, new Set([session]));
    else bucket.add(session);
  }

  /** A closing session needs no deadline any more; it is forgotten when its closeSession has been applied. */
  setClosing(session: Session): void {
    session.isClosing = true;
    this.#leaveBucket(session);
  }

  /** The session has a new timeout from now on, possibly shorter. */
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
   * Returns the sessions whose bucket is due, in no order; they stay known until `remove`.
   *
   * When the process itself was stopped, what its clients sent meanwhile still waits in the kernel. So a tick that
   * comes more than half a tick late expires nobody: the clients get one more tick to be heard.
   */
  onTick(nowMs: number): readonly Session[] {
    const lateMs = nowMs - this.#lastTickMs;
    this.#lastTickMs = nowMs;
    if (nowMs < this.#nextBucketMs) return NONE;
    if (lateMs > 1.5 * this.#tickMs) {
      this.#postponeDueBuckets(nowMs);
      return NONE;
    }
    const due: Session[] = [];
    while (this.#nextBucketMs <= nowMs) {
      const bucket = this.#buckets.get(this.#nextBucketMs);
      if (bucket !== undefined) {
        this.#buckets.delete(this.#nextBucketMs);
        for (const session of bucket) {
          session.expiresAtMs = 0;
          due.push(session);
        }
      }
      this.#nextBucketMs += this.#tickMs;
    }
    return due;
  }

  /** The buckets that are not empty, earliest first. */
  buckets(): readonly ExpiryBucket[] {
    return [...this.#buckets]
      .filter(([, sessions]) => sessions.size > 0)
      .sort(([a], [b]) => a - b)
      .map(([expiresAtMs, sessions]) => ({ expiresAtMs, sessions: [...sessions] }));
  }

  #postponeDueBuckets(nowMs: number): void {
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
