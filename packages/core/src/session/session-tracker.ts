import { ErrorCode } from '@meerkat/protocol';
import type { ConnectDecision } from './connect-decision.ts';
import { formatSessionId, type Session, SessionOwner } from './session.ts';
import type { ExpiryBucket, SessionTable } from './session-table.ts';

/**
 * Decides when sessions expire, and who may speak for them (SessionTrackerImpl, ExpiryQueue). Kept by the server that
 * proposes: alone, or as the leader for all servers.
 *
 * Sessions stand in buckets, one per tick: a session that must be heard of by t expires at the first multiple of the
 * tick that is later than t. Touching a session within the same tick costs one comparison.
 *
 * A session never expires before its timeout has passed since it was last heard of, and at most one tick later, or as much
 * later as it takes to end those that are due with it: that is done in parts, and who is heard of meanwhile lives on.
 */
export class SessionTracker implements SessionTable {
  readonly #tickMs: number;
  readonly #sessions = new Map<bigint, Session>();
  readonly #buckets = new Map<number, Set<Session>>();
  /** The next bucket to look at; every earlier one has been emptied. */
  #nextBucketMs: number;
  /** What that bucket held when it was due; those that have been heard of since are in another one. */
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

  /** Every session that is known, those that are closing among them. */
  values(): IterableIterator<Session> {
    return this.#sessions.values();
  }

  /** False of a session that is closing, and of one that is not known. */
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
  touch(session: Session, nowMs: number): true {
    if (session.isClosing) return true;
    // A timeout that is none comes from another server, or from a log; the session must not live for ever by it.
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
   * Time has passed: called before sessions are taken.
   *
   * When the process itself was stopped, what its clients sent meanwhile still waits in the kernel. So a tick that
   * comes more than half a tick late expires nobody: the clients get one more tick to be heard.
   */
  onTick(nowMs: number): void {
    const lateMs = nowMs - this.#lastTickMs;
    this.#lastTickMs = nowMs;
    if (nowMs >= this.#nextBucketMs && lateMs > 1.5 * this.#tickMs) this.#postponeDueBuckets(nowMs);
  }

  /** Takes a session whose bucket is due; it stays known until `remove`. @returns null when there is none */
  takeDue(nowMs: number): Session | null {
    for (; this.#nextBucketMs <= nowMs; this.#nextBucketMs += this.#tickMs) {
      const bucket = this.#buckets.get(this.#nextBucketMs) ?? EMPTY;
      // Taking one after the other out of a set takes a look at all that were there before.
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

  /** The buckets that are not empty, earliest first. */
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
