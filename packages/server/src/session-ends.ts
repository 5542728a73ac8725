import type { Trace, TraceEvent } from '@meerkat/core';

/** @param error null: the session has ended */
type OnEnd = (error: Error | null) => void;

/** Waits for the ends of sessions: a listener of the core's trace. */
export class SessionEnds implements Trace {
  /** Each waiter separately, as some stop waiting before. */
  readonly #waiting = new Map<bigint, Set<OnEnd>>();

  emit(event: TraceEvent): void {
    if (event.kind !== 'session-closed') return;
    const waiting = this.#waiting.get(event.sessionId);
    this.#waiting.delete(event.sessionId);
    for (const onEnd of waiting ?? []) onEnd(null);
  }

  /**
   * @param onEnd called once, when the session ends next; must not call back into the core
   * @returns stops waiting
   */
  onNext(sessionId: bigint, onEnd: OnEnd): () => void {
    const waiting = this.#waiting.get(sessionId);
    if (waiting === undefined) this.#waiting.set(sessionId, new Set([onEnd]));
    else waiting.add(onEnd);
    return () => {
      const others = this.#waiting.get(sessionId);
      if (others?.delete(onEnd) === true && others.size === 0) this.#waiting.delete(sessionId);
    };
  }

  /** The server ends: fails all waiters. */
  fail(error: Error): void {
    const all = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const waiting of all) for (const onEnd of waiting) onEnd(error);
  }
}
