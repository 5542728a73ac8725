/** A violated invariant: which one, and what was seen, detailed enough to debug it with the seed alone. */
export interface Violation {
  /** Number of the invariant, as in the table of `README.md`: E1 … E14, Z1 … Z17, D1 … D10, S1 …, C1 …, W1 …, L2. */
  readonly invariant: string;
  readonly message: string;
  /** Virtual milliseconds. */
  readonly atMs: number;
  /** Ids of the servers involved; empty when it is about what clients saw. */
  readonly servers: readonly number[];
}

/** Collects violations; the first ones show the cause, the later ones may be its consequences. */
export class Violations {
  readonly list: Violation[] = [];
  readonly #nowMs: () => number;
  readonly #max: number;
  readonly #without: readonly string[];
  /** Violations beyond the limit, which are counted only. */
  dropped = 0;

  /** @param without invariants that are not checked: to find out what then goes unnoticed */
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
