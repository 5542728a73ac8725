import type { CallOptions, TransactionError } from '@meerkat/client';
import type { Guarded } from '../kernel/guarded.ts';

/** An item that is ours, before its data are looked at. */
export interface Claim {
  readonly name: string;
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly token: bigint;
  readonly isHeld: boolean;
  readonly signal: AbortSignal;
  readonly guarded: Guarded | null;
  done(options: CallOptions): Promise<void>;
  giveBack(options: CallOptions): Promise<void>;
}

/** How items are claimed. */
export interface Claimer {
  /** Whether a claim leaves the place in the line of consumers in the same transaction. */
  readonly leavesPlace: boolean;
  /**
   * Continues until the outcome is known: it has no limit, so that nothing is claimed without our knowledge.
   *
   * @param placePath our place in the line of consumers; null for none
   * @returns null when another client was faster, or the session ended on the way or counts as lost already
   */
  claim(name: string, placePath: string | null): Promise<Claim | null>;
}

/** Another client has the item: that is an answer. Everything else, such as missing rights, is reported. */
export function refused(error: TransactionError): null {
  const { code } = error.cause;
  if (code === 'NONODE' || code === 'NODEEXISTS') return null;
  throw error;
}
