/** What one test of a simulation did with one seed. */
export interface Run {
  /** Without the seed. */
  readonly title: string;
  /** Of all worlds that it made, together. */
  readonly virtualMs: number;
  /** Hashes of everything that happened in them. */
  readonly traces: readonly string[];
  readonly cpuMs: number;
  /** The error that the test ended with; null: everything held. */
  readonly violation: string | null;
}

/** What all tests of a simulation did with one seed. */
export interface SeedOutcome {
  readonly seed: number;
  readonly runs: readonly Run[];
}
