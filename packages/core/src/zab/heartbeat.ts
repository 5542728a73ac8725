const NEVER = Number.POSITIVE_INFINITY;

/** When a leader looks after its learners: every half tick. */
export class Heartbeat {
  readonly #intervalMs: number;
  #dueMs = NEVER;
  #isWholeTick = false;

  constructor(tickTimeMs: number) {
    this.#intervalMs = tickTimeMs / 2;
  }

  /** Milliseconds of the monotonic clock; Infinity while it does not beat. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /** The next beat is half a tick from now. */
  schedule(nowMs: number): void {
    this.#dueMs = nowMs + this.#intervalMs;
  }

  /** @returns true at each second call: what is to be done once a tick */
  isSecond(): boolean {
    this.#isWholeTick = !this.#isWholeTick;
    return !this.#isWholeTick;
  }

  stop(): void {
    this.#dueMs = NEVER;
  }
}
