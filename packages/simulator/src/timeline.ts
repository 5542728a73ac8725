/**
 * Virtual time: a queue of what is going to happen. Time stands still while something happens and then jumps to the
 * next event, so that an hour without events costs nothing.
 *
 * Events of the same millisecond happen in the order in which they were planned. Nothing here knows a real clock.
 */
export class Timeline {
  #nowMs = 0;
  #nextSequence = 0;
  readonly #heap: PlannedEvent[] = [];
  #plannedCount = 0;

  /** Virtual milliseconds since the beginning, in steps of 1/1024. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Events that are still going to happen. */
  get plannedCount(): number {
    return this.#plannedCount;
  }

  /** Plans an event. @returns cancels it; without effect once it has happened */
  after(delayMs: number, run: () => void): () => void {
    const event: PlannedEvent = {
      atMs: Math.ceil((this.#nowMs + Math.max(0, delayMs)) * GRAINS_PER_MS) / GRAINS_PER_MS,
      sequence: this.#nextSequence++,
      run,
      isCancelled: false,
    };
    this.#push(event);
    this.#plannedCount++;
    return () => {
      if (event.isCancelled) return;
      event.isCancelled = true;
      this.#plannedCount--;
    };
  }

  /** When the next event happens; Infinity when there is none. */
  get nextMs(): number {
    this.#dropCancelled();
    return this.#heap[0]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  /** Lets the next event happen. @returns false when there is none until `untilMs`, which it is then */
  step(untilMs: number): boolean {
    this.#dropCancelled();
    const next = this.#heap[0];
    if (next === undefined || next.atMs > untilMs) {
      this.#nowMs = Math.max(this.#nowMs, untilMs);
      return false;
    }
    this.#pop();
    // Happened: cancelling it later changes nothing.
    next.isCancelled = true;
    this.#plannedCount--;
    this.#nowMs = next.atMs;
    next.run();
    return true;
  }

  #dropCancelled(): void {
    while (this.#heap[0]?.isCancelled === true) this.#pop();
  }

  /* A binary heap: the children of i are 2i + 1 and 2i + 2, and neither comes before it. */

  #push(event: PlannedEvent): void {
    const heap = this.#heap;
    let i = heap.push(event) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (isBefore(heap[parent]!, event)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (isBefore(last, heap[child]!)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
  }
}

/**
 * Moments are multiples of 1/1024 ms, which binary fractions hold exactly. With arbitrary fractions an event could come
 * a rounding error before the deadline it was planned for, again and again, without time ever moving.
 */
const GRAINS_PER_MS = 1024;

interface PlannedEvent {
  readonly atMs: number;
  readonly sequence: number;
  readonly run: () => void;
  isCancelled: boolean;
}

function isBefore(a: PlannedEvent, b: PlannedEvent): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.sequence < b.sequence);
}
