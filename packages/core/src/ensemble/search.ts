/** A server's search for a leader: when it starts and why, and when read-only mode starts because it takes long. */
import { LookPauses } from './look-pauses.ts';

const NEVER = Number.POSITIVE_INFINITY;

export class Search {
  /** Why the next or current search started, as a message. */
  reason = 'it has just started';
  readonly pauses: LookPauses = new LookPauses();
  #beginsAtMs = NEVER;
  #readOnlyAtMs = NEVER;
  #isUnderWay = false;

  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  /** By the turn's clock, like all times here; Infinity when nothing is due. */
  get nextDeadlineMs(): number {
    return Math.min(this.#beginsAtMs, this.#readOnlyAtMs);
  }

  schedule(beginsAtMs: number): void {
    this.#beginsAtMs = beginsAtMs;
  }

  isDue(nowMs: number): boolean {
    return nowMs >= this.#beginsAtMs;
  }

  /**
   * Starts the search, or continues it.
   *
   * @param readOnlyAtMs when read-only mode starts if no leader is found; ignored if a search is in progress
   */
  begin(readOnlyAtMs: number): void {
    this.#beginsAtMs = NEVER;
    if (!this.#isUnderWay) this.#readOnlyAtMs = readOnlyAtMs;
    this.#isUnderWay = true;
  }

  /** @returns true once, when read-only mode is due */
  takeReadOnly(nowMs: number): boolean {
    if (nowMs < this.#readOnlyAtMs) return false;
    this.#readOnlyAtMs = NEVER;
    return true;
  }

  /** A leader has been found. */
  end(): void {
    this.#isUnderWay = false;
    this.#readOnlyAtMs = NEVER;
  }

  /** Cancels everything that is scheduled. */
  cancel(): void {
    this.#beginsAtMs = NEVER;
    this.#readOnlyAtMs = NEVER;
  }
}
