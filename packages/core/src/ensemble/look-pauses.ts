/**
 * Pauses before looking again, in milliseconds, indexed by the number of consecutive roles that failed. Without them, a
 * decision that cannot be carried out would be repeated immediately and without end.
 */
const PAUSES_MS: readonly number[] = [0, 20, 50, 100, 200, 400, 800];

/** The longest pause, in milliseconds. */
export const PAUSE_MAX_MS: number = PAUSES_MS.at(-1)!;

/** How long a server waits between a role and the next search. */
export class LookPauses {
  #failures = 0;
  #minMs = 0;

  /** A role has led to an epoch. */
  onEstablished(): void {
    this.#failures = 0;
  }

  /** A role has ended before it led to an epoch. */
  onFailed(): void {
    this.#failures++;
  }

  /** Makes the next pause at least this many milliseconds long. */
  extend(ms: number): void {
    this.#minMs = ms;
  }

  /** @returns milliseconds */
  take(): number {
    const pauseMs = Math.max(PAUSES_MS[Math.min(this.#failures, PAUSES_MS.length - 1)]!, this.#minMs);
    this.#minMs = 0;
    return pauseMs;
  }
}
