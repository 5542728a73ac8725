import type { Zxid } from '@meerkat/protocol';

/** A change of the membership that a leader has put in force. */
export interface ReceivedChange {
  readonly zxid: Zxid;
  /** Server id of whoever leads the new membership. */
  readonly designatedLeader: number;
}

/**
 * The changes of the membership that a learner has been sent over its one connection. A change counts from its proposal
 * on, together with what was before; it is in force alone once its txn is applied here.
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

  /** The last change that was proposed, unless it is committed; null when there is none. */
  pendingBehind(committedUpTo: Zxid): Zxid | null {
    return this.#lastProposed !== null && this.#lastProposed > committedUpTo ? this.#lastProposed : null;
  }

  /** The last change that is applied now and has not been taken before; null when there is none. */
  takeCommitted(watermark: Zxid): ReceivedChange | null {
    const taken = this.#activated.findLast(({ zxid }) => zxid <= watermark) ?? null;
    if (taken !== null) this.#activated = this.#activated.filter(({ zxid }) => zxid > watermark);
    return taken;
  }
}
