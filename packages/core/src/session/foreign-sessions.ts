import { serverIdOf } from './session-ids.ts';

/**
 * Decides, with local sessions (`localSessionsEnabled`), whether a leader accepts a write for a session that it does
 * not know (LeaderSessionTracker.checkSession).
 *
 * Apache's leader accepts it for every session id of another server, even for a replicated session that ended while the
 * write was in flight. This one remembers ended sessions until every connected learner must have applied their end and
 * sends no more writes for them.
 */
export class ForeignSessions {
  readonly #serverId: number;
  readonly #memoryMs: number;
  #ended = new Set<bigint>();
  #endedBefore = new Set<bigint>();
  #nextMs: number;

  /** @param memoryMs longest time until a connected learner has received what is committed */
  constructor(serverId: number, memoryMs: number, nowMs: number) {
    this.#serverId = serverId;
    this.#memoryMs = memoryMs;
    this.#nextMs = nowMs + memoryMs;
  }

  /** A replicated session has ended. */
  onEnded(id: bigint): void {
    this.#ended.add(id);
  }

  /** @param id not the id of a live replicated session */
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
