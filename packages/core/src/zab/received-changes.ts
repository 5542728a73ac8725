import type { Zxid } from '@meerkat/protocol';

/** A membership change that a leader has activated. */
export interface ReceivedChange {
  readonly zxid: Zxid;
  /** Server id of the leader of the new membership. */
  readonly designatedLeader: number;
}

/**
 * The membership changes that a learner has been sent over its one connection. From its proposal on a change is in
 * force together with the previous membership, and alone once its txn is applied here.
 */
export class ReceivedChanges {
  #lastProposed: Zxid | null = null;
  /** Ascending. */
  #activated: readonly ReceivedChange[] = [];

  propose(zxid: Zxid): void {
    this.#lastProposed = zxid;
  }

  activate(zxid: Zxid, designatedLeader: number): void {
    this.#activated = [...this.#activated, { zxid, designatedLeader }];
  }

  /** The last proposed change if it is not committed; otherwise null. */
  pendingBehind(committedUpTo: Zxid): Zxid | null {
    return this.#lastProposed !== null && this.#lastProposed > committedUpTo ? this.#lastProposed : null;
  }

  /** Takes the last change that is applied now; null when there is none that was not taken before. */
  takeCommitted(watermark: Zxid): ReceivedChange | null {
    const taken = this.#activated.findLast(({ zxid }) => zxid <= watermark) ?? null;
    if (taken !== null) this.#activated = this.#activated.filter(({ zxid }) => zxid > watermark);
    return taken;
  }
}
