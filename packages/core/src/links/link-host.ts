import type { Trace } from '../base/ports.ts';

/** A link that has collected output during a turn. */
export interface Flushable {
  /** Hands the turn's output to the stream, in one write. */
  flush(): void;
}

/** What a link between servers needs of the server around it. */
export interface LinkHost {
  readonly trace: Trace;
  /** Largest field of a packet of a learner's, in bytes; the largest txn, too (`txnBytesMaxOf`). */
  readonly fieldBytesMax: number;
  /** Time of this turn, monotonic milliseconds. */
  nowMs(): number;
  /** The link has output; `flush` is called at the end of the turn. */
  onOutput(link: Flushable): void;
  /** Runs an action as an event of its own, within this turn: what an effect brings about is told by no other way. */
  defer(action: () => void): void;
}

/** A turn's txns are as many under load, every turn: a buffer that is given up at each would keep the collector busy. */
export const LINK_KEPT_BYTES_MAX: number = 4 * 1024 * 1024;
