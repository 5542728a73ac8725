/** What a fault means, and what to do. */
export interface FaultEntry {
  /** Which question it answers. */
  readonly about: 'connecting' | 'quorum' | 'start' | 'slowness' | 'session' | 'lock' | 'care';
  readonly meaning: string;
  readonly advice: string;
  /** True: worth knowing, and nothing is broken. */
  readonly isNote?: true;
}
