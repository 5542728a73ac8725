/** A broken promise: which one, and what was seen, for whoever reads it at night with a seed in hand. */
export interface Violation {
  /** Number of the promise, as in the table of `README.md`: E1 … E14, Z1 … Z17, D1 … D10, S1 …, C1 …, W1 …, L2. */
  readonly invariant: string;
  readonly message: string;
  /** Virtual milliseconds. */
  readonly atMs: number;
  /** Ids of the servers that took part; empty when it is about what clients saw. */
  readonly servers: readonly number[];
}

/** Collects violations; the first ones tell the cause, the later ones are its consequences. */
export class Violations {
  readonly list: Violation[] = [];
  readonly #nowMs: () => number;
  readonly #max: number;
  readonly #without: readonly string[];
  /** Violations beyond the limit, which are counted only. */
  dropped = 0;

  /** @param without promises that nobody looks after: to find out what then goes unnoticed */
  constructor(nowMs: () => number, max = 100, without: readonly string[] = []) {
    this.#nowMs = nowMs;
    this.#max = max;
    this.#without = without;
  }

  report(invariant: string, servers: readonly number[], message: string): void {
    this.reportAt(this.#nowMs(), invariant, servers, message);
  }

  reportAt(atMs: number, invariant: string, servers: readonly number[], message: string): void {
    if (this.#without.includes(invariant)) return;
    if (this.list.length < this.#max) this.list.push({ invariant, message, atMs, servers });
    else this.dropped++;
  }
}
