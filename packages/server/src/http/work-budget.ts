import { performance } from 'node:perf_hooks';

/**
 * Runs administrative work beside the service: in slices of a millisecond, and for 5 % of the time in the long run.
 *
 * A token bucket of time: it starts full, work takes from it, and it refills by a twentieth of the elapsed time. So a
 * single question is answered at once, and endless questions get 5 % of the event loop, no more.
 */
export class WorkBudget {
  readonly #queue: Iterator<void>[] = [];
  #storedMs = STORE_MS;
  #refilledMs: number = performance.now();
  #timer: NodeJS.Timeout | NodeJS.Immediate | null = null;
  #isStopped = false;

  /** Works through an iterator, a step after the other, in turn with the other ones. */
  add(steps: Iterator<void>): void {
    if (this.#isStopped) return;
    this.#queue.push(steps);
    this.#schedule();
  }

  stop(): void {
    this.#isStopped = true;
    this.#queue.length = 0;
  }

  #schedule(): void {
    if (this.#timer !== null || this.#queue.length === 0) return;
    this.#refill();
    if (this.#storedMs > 0) {
      this.#timer = setImmediate(this.#onDue);
      return;
    }
    this.#timer = setTimeout(this.#onDue, Math.ceil((SLICE_MS - this.#storedMs) / PART));
    this.#timer.unref();
  }

  readonly #onDue = (): void => {
    this.#timer = null;
    const steps = this.#queue.shift();
    if (steps === undefined) return;
    const startedMs = performance.now();
    let isDone = false;
    while (!isDone && performance.now() - startedMs < SLICE_MS) isDone = steps.next().done === true;
    this.#storedMs -= performance.now() - startedMs;
    if (!isDone && !this.#isStopped) this.#queue.push(steps);
    this.#schedule();
  };

  #refill(): void {
    const nowMs = performance.now();
    this.#storedMs = Math.min(STORE_MS, this.#storedMs + (nowMs - this.#refilledMs) * PART);
    this.#refilledMs = nowMs;
  }
}

/** The part of the time that may be used in the long run. */
const PART = 0.05;
const SLICE_MS = 1;
/** What may be used without waiting. */
const STORE_MS = 50;
