import type { SeedOutcome } from './seed-outcome.ts';
import type { Seeds } from './slices.ts';

/** A slice, and where the bundle has its simulation. */
export interface ToWorker extends Seeds {
  readonly file: string;
}

export type FromWorker =
  | { readonly kind: 'begin'; readonly seed: number }
  | { readonly kind: 'seed'; readonly outcome: SeedOutcome }
  /** The slice is done. */
  | { readonly kind: 'end' };
