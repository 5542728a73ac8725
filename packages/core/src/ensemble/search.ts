/** A server's search for a leader: when it begins and why, and when reads are answered because it takes long. */
import { LookPauses } from './look-pauses.ts';

const NEVER = Number.POSITIVE_INFINITY;

export class Search {
  /** Why the next search begins, or began, for people. */
  reason = 'it has just started';
  readonly pauses: LookPauses = new LookPauses();
  #beginsAtMs = NEVER;
  #readOnlyAtMs = NEVER;
  #isUnderWay = false;

  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  /** By the clock of turns, like all times here; Infinity when nothing is due. */
  get nextDeadlineMs(): number {
    return Math.min(this.#beginsAtMs, this.#readOnlyAtMs);
  }

  schedule(beginsAtMs: number): void {
    this.#beginsAtMs = beginsAtMs;
  }

  isDue(nowMs: number): boolean {
    return nowMs >= this.#beginsAtMs;
  }

  /** @param readOnlyAtMs when reads are answered unless it has ended by then; that of a search under way stays */
  begin(readOnlyAtMs: number): void {
    this.#beginsAtMs = NEVER;
    if (!this.#isUnderWay) this.#readOnlyAtMs = readOnlyAtMs;
    this.#isUnderWay = true;
  }

  /** @returns true once, when the time for reads has come */
  takeReadOnly(nowMs: number): boolean {
    if (nowMs < this.#readOnlyAtMs) return false;
    this.#readOnlyAtMs = NEVER;
    return true;
  }

  /** A leader is found. */
  end(): void {
    this.#isUnderWay = false;
    this.#readOnlyAtMs = NEVER;
  }

  /** Nothing is due any more. */
  cancel(): void {
    this.#beginsAtMs = NEVER;
    this.#readOnlyAtMs = NEVER;
  }
}
