/** Silence of a learner as its leader sees it: how long it has lasted, and its limit. */
export class LearnerSilence {
  #sinceMs: number;
  #maxMs: number;
  /** As `#sinceMs`, but only moved by a sign of life, not by progress of this server's own disk or buffers. */
  #aliveMs: number;

  constructor(nowMs: number, maxMs: number) {
    this.#sinceMs = nowMs;
    this.#aliveMs = nowMs;
    this.#maxMs = maxMs;
  }

  /** Expects a sign of life at least every `maxMs` from now on. */
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

  /** Milliseconds since its last sign of life, or since the last `expect`. */
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
