import type { Txn } from '@meerkat/protocol';

/** A request that is prepared in steps, some changes at a time. */
export interface PrepareSteps {
  /** Changes in all. */
  readonly size: number;
  /** @returns the txn; null while there is more to prepare */
  advance(count: number): Txn | null;
}
