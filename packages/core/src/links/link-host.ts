import type { Trace } from '../base/ports.ts';
import type { Turn } from '../base/turn.ts';

/** What a link between servers needs from the server around it. */
export interface LinkHost {
  readonly trace: Trace;
  /** Maximum field size of a learner's packet, in bytes; also the maximum txn size (`txnBytesMaxOf`). */
  readonly fieldBytesMax: number;
  readonly turn: Turn;
}

/** Under load every turn has as many txns: releasing a buffer after each would keep the garbage collector busy. */
export const LINK_KEPT_BYTES_MAX: number = 4 * 1024 * 1024;
