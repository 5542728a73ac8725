import type { CallOptions, TransactionError } from '@meerkat/client';
import type { Guarded } from '../kernel/guarded.ts';

/** An item that is ours, before its data is read. */
export interface Claim {
  readonly name: string;
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly token: bigint;
  readonly isHeld: boolean;
  readonly signal: AbortSignal;
  readonly guarded: Guarded | null;
  done(options: CallOptions): Promise<void>;
  release(options: CallOptions): Promise<void>;
}

/** A way of claiming items. */
export interface Claimer {
  /** Whether a claim leaves our place in the line of consumers in the same transaction. */
  readonly leavesPlace: boolean;
  /**
   * Continues until the outcome is known, without a deadline, so that nothing is claimed without our knowledge.
   *
   * @param placePath our place in the line of consumers; null for none
   * @returns null when another client was faster, or the session ended meanwhile or counts as lost
   */
  claim(name: string, placePath: string | null): Promise<Claim | null>;
}

/** null when another client has the item. Everything else, such as missing permissions, is thrown. */
export function refused(error: TransactionError): null {
  const { code } = error.cause;
  if (code === 'NONODE' || code === 'NODEEXISTS') return null;
  throw error;
}
