/** What one test of a simulation did with one seed. */
export interface Run {
  /** Without the seed. */
  readonly title: string;
  /** Sum over all worlds that it created. */
  readonly virtualMs: number;
  /** Hashes of all events in them. */
  readonly traces: readonly string[];
  readonly cpuMs: number;
  /** The error that the test failed with; null: it passed. */
  readonly violation: string | null;
}

/** What all tests of a simulation did with one seed. */
export interface SeedOutcome {
  readonly seed: number;
  readonly runs: readonly Run[];
}
