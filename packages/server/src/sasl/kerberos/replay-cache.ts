/** Authenticators that were used, for as long as they could be used again. Shared by all exchanges of a server. */
export class ReplayCache {
  /** Until when each counts, the oldest first. */
  readonly #untilMs = new Map<string, number>();
  readonly #entriesMax: number;

  /** @param entriesMax of more, new ones are refused; each took a ticket of this realm to make */
  constructor(entriesMax: number = 100_000) {
    this.#entriesMax = entriesMax;
  }

  /** @returns false when it is known, or there is no room to know it */
  add(authenticator: string, nowMs: number, untilMs: number): boolean {
    for (const [old, oldUntilMs] of this.#untilMs) {
      if (oldUntilMs > nowMs) break;
      this.#untilMs.delete(old);
    }
    if (this.#untilMs.has(authenticator) || this.#untilMs.size >= this.#entriesMax) return false;
    this.#untilMs.set(authenticator, untilMs);
    return true;
  }
}
