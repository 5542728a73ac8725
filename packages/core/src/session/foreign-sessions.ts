import { serverIdOf } from './session-ids.ts';

/**
 * Decides, where servers have sessions of their own (`localSessionsEnabled`), whether a leader takes a write for a session
 * that it does not know (LeaderSessionTracker.checkSession).
 *
 * Apache's leader takes it for every id of another server, and so also for a session of the ensemble that has ended while
 * the write was on its way. This one remembers those that have ended, until each learner that still has a link must have
 * heard of it: what a learner sends from then on is not theirs.
 */
export class ForeignSessions {
  readonly #serverId: number;
  readonly #memoryMs: number;
  #ended = new Set<bigint>();
  #endedBefore = new Set<bigint>();
  #nextMs: number;

  /** @param memoryMs how long a learner may not have heard of what is committed, at most */
  constructor(serverId: number, memoryMs: number, nowMs: number) {
    this.#serverId = serverId;
    this.#memoryMs = memoryMs;
    this.#nextMs = nowMs + memoryMs;
  }

  /** A session of the ensemble has ended. */
  onEnded(id: bigint): void {
    this.#ended.add(id);
  }

  /** @param id of no session of the ensemble that lives */
  mayBeLocal(id: bigint): boolean {
    return serverIdOf(id) !== this.#serverId && !this.#ended.has(id) && !this.#endedBefore.has(id);
  }

  onTick(nowMs: number): void {
    if (nowMs < this.#nextMs) return;
    this.#nextMs = nowMs + this.#memoryMs;
    this.#endedBefore = this.#ended;
    this.#ended = new Set();
  }
}
