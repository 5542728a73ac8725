/** How long a leader has had no sign of life from a learner, and how long that may be. */
export class LearnerSilence {
  #sinceMs: number;
  #maxMs: number;
  /** As `#sinceMs`, but only a sign of life moves it: not what this server's own disk or buffers have done. */
  #aliveMs: number;

  constructor(nowMs: number, maxMs: number) {
    this.#sinceMs = nowMs;
    this.#aliveMs = nowMs;
    this.#maxMs = maxMs;
  }

  /** Something is expected of it, and something else every so many milliseconds. */
  expect(nowMs: number, maxMs: number): void {
    this.#sinceMs = nowMs;
    this.#maxMs = maxMs;
  }

  expectNothing(): void {
    this.#maxMs = Number.POSITIVE_INFINITY;
  }

  onSignOfLife(nowMs: number): void {
    this.#sinceMs = nowMs;
    this.#aliveMs = nowMs;
  }

  /** Milliseconds since its last sign of life, or since something was expected of it. */
  lengthMs(nowMs: number): number {
    return nowMs - this.#sinceMs;
  }

  isTooLong(nowMs: number): boolean {
    return this.lengthMs(nowMs) > this.#maxMs;
  }

  /** Milliseconds since its last sign of life. */
  lifelessMs(nowMs: number): number {
    return nowMs - this.#aliveMs;
  }
}
