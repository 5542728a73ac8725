import type { Visited } from './tree-walk.ts';

/** How large a subtree is. */
export interface Totals {
  readonly path: string;
  readonly depth: number;
  /** Data of the znode alone. Bytes. */
  readonly own: number;
  /** Data of the znode and all below. Bytes. */
  bytes: number;
  /** The znode included. */
  znodes: number;
  ephemerals: number;
}

/** Sums up subtrees as their znodes are visited, parents first. Keeps those down to a depth, and no others. */
export class SubtreeTotals {
  readonly #depthMax: number;
  /** The subtrees that the last znode belongs to, the outermost first. */
  readonly #open: Totals[] = [];
  readonly kept: Totals[] = [];

  constructor(depthMax: number) {
    this.#depthMax = depthMax;
  }

  add({ path, depth, stat }: Visited): void {
    this.#open.length = Math.min(this.#open.length, depth);
    if (depth <= this.#depthMax) {
      const totals = { path, depth, own: stat.dataLength, bytes: 0, znodes: 0, ephemerals: 0 };
      this.#open.push(totals);
      this.kept.push(totals);
    }
    for (const totals of this.#open) {
      totals.bytes += stat.dataLength;
      totals.znodes++;
      if (stat.isEphemeral) totals.ephemerals++;
    }
  }
}
