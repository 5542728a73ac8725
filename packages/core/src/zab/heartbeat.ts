const NEVER = Number.POSITIVE_INFINITY;

/** Schedules the leader's checks of its learners, every half tick. */
export class Heartbeat {
  readonly #intervalMs: number;
  #dueMs = NEVER;
  #isWholeTick = false;

  constructor(tickTimeMs: number) {
    this.#intervalMs = tickTimeMs / 2;
  }

  /** Milliseconds of the monotonic clock; Infinity while stopped. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /** The next beat is half a tick from now. */
  schedule(nowMs: number): void {
    this.#dueMs = nowMs + this.#intervalMs;
  }

  /** @returns true at every second call: for what is done once per tick */
  isSecond(): boolean {
    this.#isWholeTick = !this.#isWholeTick;
    return !this.#isWholeTick;
  }

  stop(): void {
    this.#dueMs = NEVER;
  }
}
