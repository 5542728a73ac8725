import type { Trace } from '../base/ports.ts';
import type { Turn } from '../base/turn.ts';

/** What a link between servers needs of the server around it. */
export interface LinkHost {
  readonly trace: Trace;
  /** Largest field of a packet of a learner's, in bytes; the largest txn, too (`txnBytesMaxOf`). */
  readonly fieldBytesMax: number;
  readonly turn: Turn;
}

/** A turn's txns are as many under load, every turn: a buffer that is given up at each would keep the collector busy. */
export const LINK_KEPT_BYTES_MAX: number = 4 * 1024 * 1024;
