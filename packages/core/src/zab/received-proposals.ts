/**
 * What a learner has been sent over its one connection, as zxids: how far the proposals and the commits have come, and
 * which proposals it still owes an ACK.
 *
 *     base ──────────── committedUpTo ──────────── last
 *      │ the history it     │ not committed yet     │
 *      │ began with         └──── #uncommitted ─────┘
 *
 * What holds, and who sees to it:
 *
 * 1. base ≤ committedUpTo ≤ last: `propose` takes only what follows `last`, `commit` only what was proposed.
 * 2. The proposals have no gap: the learner asks `follows` before `propose`.
 * 3. Memory is needed for what is not committed or not durable, never for the whole history that a learner is sent.
 */
import { counterOf, epochOf, Fifo, type Zxid } from '@meerkat/protocol';
import { assert } from '../assert.ts';

export class ReceivedProposals {
  /** Last zxid of the history before the first proposal. */
  readonly base: Zxid;
  #last: Zxid;
  #committedUpTo: Zxid;
  readonly #uncommitted: Fifo<Zxid> = new Fifo();
  /** Proposals to be acknowledged, oldest first; null until NEWLEADER has been acknowledged. */
  #unacknowledged: Fifo<Zxid> | null = null;

  constructor(base: Zxid) {
    this.base = base;
    this.#last = base;
    this.#committedUpTo = base;
  }

  /** The proposal that came last; `base` before there is one. */
  get last(): Zxid {
    return this.#last;
  }

  /** What the leader has said to be committed, whether it is durable here or not. */
  get committedUpTo(): Zxid {
    return this.#committedUpTo;
  }

  /**
   * True when `zxid` may come next: the next of the epoch, or the first of a later one. Apache's learners take any of a
   * later one, and with it the holes that a log of theirs may have (ZOOKEEPER-2846).
   */
  follows(zxid: Zxid): boolean {
    return zxid === this.#last + 1 || (epochOf(zxid) > epochOf(this.#last) && counterOf(zxid) === 1);
  }

  propose(zxid: Zxid): void {
    assert(this.follows(zxid), 'a proposal follows the one before');
    this.#last = zxid;
    this.#uncommitted.push(zxid);
    this.#unacknowledged?.push(zxid);
  }

  /**
   * A commit is a watermark: it commits what was proposed before as well. One that says nothing new is fine.
   *
   * @returns false when no such proposal has come
   */
  commit(zxid: Zxid): boolean {
    if (zxid <= this.#committedUpTo) return true;
    if (zxid > this.#last) return false;
    for (let next = this.#uncommitted.peek(); next !== undefined && next <= zxid; next = this.#uncommitted.peek()) {
      this.#uncommitted.shift();
      this.#committedUpTo = next;
    }
    return this.#committedUpTo === zxid;
  }

  /**
   * From here on proposals are acknowledged: all that come, and those that have come and are not committed. What is
   * committed already needs no ACK, the leader had its quorum without this server.
   */
  beginAcknowledging(): void {
    assert(this.#unacknowledged === null, 'acknowledging begins once');
    this.#unacknowledged = new Fifo();
    for (let i = this.#uncommitted.length; i > 0; i--) {
      const zxid = this.#uncommitted.shift();
      if (zxid === undefined) break;
      this.#uncommitted.push(zxid);
      this.#unacknowledged.push(zxid);
    }
  }

  /** Takes the oldest proposal that is owed an ACK, if it is not later than `upTo`; each is taken once. */
  takeUnacknowledged(upTo: Zxid): Zxid | null {
    const oldest = this.#unacknowledged?.peek();
    if (oldest === undefined || oldest > upTo) return null;
    this.#unacknowledged?.shift();
    return oldest;
  }
}
