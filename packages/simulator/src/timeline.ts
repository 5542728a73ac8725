/**
 * Virtual time: a queue of planned events. Time stands still while an event runs and then jumps to the next one, so
 * that an hour without events costs nothing.
 *
 * Events of the same moment happen in the order in which they were planned. Nothing here knows a real clock.
 *
 * Most events only concern servers and the network, which work without JavaScript promises. `touch` says that promises
 * may have settled; only then does the world wait for their callbacks.
 */
export class Timeline {
  #nowMs = 0;
  #nextSequence = 0;
  #isTouched = false;
  /** Planned for a later moment. */
  readonly #heap: PlannedEvent[] = [];
  /** Planned for this moment, at this moment: behind everything of the heap. From `#nextOfNow` on. */
  readonly #now: PlannedEvent[] = [];
  #nextOfNow = 0;
  #plannedCount = 0;
  #happenedCount = 0;
  /** Events that have happened at this moment. */
  #momentCount = 0;

  /** Virtual milliseconds since the beginning, in steps of 1/1024. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Events that are still planned. */
  get plannedCount(): number {
    return this.#plannedCount;
  }

  /** Events that have happened. */
  get happenedCount(): number {
    return this.#happenedCount;
  }

  /** Since `settle`, something has happened to a program that works with promises. */
  get isTouched(): boolean {
    return this.#isTouched;
  }

  touch(): void {
    this.#isTouched = true;
  }

  settle(): void {
    this.#isTouched = false;
  }

  /** Plans an event after which promises are drained. @returns cancels it; without effect once it has happened */
  after(delayMs: number, run: () => void): () => void {
    const event = this.plan(delayMs, () => {
      this.#isTouched = true;
      run();
    });
    return () => this.cancel(event);
  }

  /** Plans an event that settles no promise. @returns for `cancel` */
  plan(delayMs: number, run: () => void): PlannedEvent {
    const atMs = delayMs > 0 ? Math.ceil((this.#nowMs + delayMs) * GRAINS_PER_MS) / GRAINS_PER_MS : this.#nowMs;
    const event = { atMs, sequence: this.#nextSequence++, run, isOver: false };
    if (atMs > this.#nowMs) this.#push(event);
    else this.#now.push(event);
    this.#plannedCount++;
    return event;
  }

  /** Without effect once it has happened. */
  cancel(event: PlannedEvent): void {
    if (event.isOver) return;
    event.isOver = true;
    this.#plannedCount--;
  }

  /** Time of the next event; Infinity when there is none. */
  get nextMs(): number {
    return this.#next()?.atMs ?? Number.POSITIVE_INFINITY;
  }

  /**
   * Runs the next event.
   *
   * @returns false when no event is due by `untilMs`; the time is then `untilMs`
   * @throws Error when time stands still: events of one moment keep planning others for the same moment
   */
  step(untilMs: number): boolean {
    const next = this.#next();
    if (next === null || next.atMs > untilMs) {
      this.#nowMs = Math.max(this.#nowMs, untilMs);
      return false;
    }
    if (next === this.#heap[0]) this.#pop();
    else this.#nextOfNow++;
    // Happened: cancelling it later changes nothing.
    next.isOver = true;
    this.#plannedCount--;
    this.#happenedCount++;
    this.#momentCount = next.atMs > this.#nowMs ? 0 : this.#momentCount + 1;
    if (this.#momentCount > EVENTS_OF_MOMENT_MAX) {
      throw new Error(`time stands still at ${this.#nowMs} ms: ${EVENTS_OF_MOMENT_MAX} events, and there are more`);
    }
    this.#nowMs = next.atMs;
    next.run();
    return true;
  }

  #next(): PlannedEvent | null {
    const heap = this.#heap;
    while (heap[0]?.isOver === true) this.#pop();
    while (this.#now[this.#nextOfNow]?.isOver === true) this.#nextOfNow++;
    const ofNow = this.#now[this.#nextOfNow];
    if (ofNow === undefined) {
      this.#now.length = 0;
      this.#nextOfNow = 0;
      return heap[0] ?? null;
    }
    const ofHeap = heap[0];
    return ofHeap !== undefined && isBefore(ofHeap, ofNow) ? ofHeap : ofNow;
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
/** A timer whose deadline has passed, and that is rearmed without an effect, would loop forever. */
const EVENTS_OF_MOMENT_MAX = 500_000;
/** The shortest step of time, milliseconds. */
export const GRAIN_MS: number = 1 / GRAINS_PER_MS;

export interface PlannedEvent {
  readonly atMs: number;
  readonly sequence: number;
  readonly run: () => void;
  /** It has happened, or was cancelled. */
  isOver: boolean;
}

function isBefore(a: PlannedEvent, b: PlannedEvent): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.sequence < b.sequence);
}
