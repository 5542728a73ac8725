import type { Trace, TraceEvent } from '@meerkat/core';
import { Deferred } from './deferred.ts';

/** Waits for the ends of sessions: a listener of the core's trace. */
export class SessionEnds implements Trace {
  readonly #awaited = new Map<bigint, Deferred<boolean>>();

  emit(event: TraceEvent): void {
    if (event.kind === 'session-closed') this.#resolve(event.sessionId, true);
  }

  /** @returns true once the session has ended, false when it is unknown */
  next(sessionId: bigint): Promise<boolean> {
    let end = this.#awaited.get(sessionId);
    if (end === undefined) {
      end = new Deferred();
      this.#awaited.set(sessionId, end);
    }
    return end.promise;
  }

  onUnknown(sessionId: bigint): void {
    this.#resolve(sessionId, false);
  }

  /** No session ends any more. */
  fail(error: Error): void {
    for (const end of this.#awaited.values()) end.reject(error);
    this.#awaited.clear();
  }

  #resolve(sessionId: bigint, value: boolean): void {
    this.#awaited.get(sessionId)?.resolve(value);
    this.#awaited.delete(sessionId);
  }
}
