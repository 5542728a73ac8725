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
 * 2. The proposals have no gap: the learner asks `follows` before `propose`, and calls `fill` where the leader has left one.
 * 3. Memory is needed for what is not committed or not durable, never for the whole history that a learner is sent.
 */
import { counterOf, epochOf, Fifo, type Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import { type Durable, durableWithin } from '../base/durable.ts';
import { type Agreed, agreedByLeader } from './committed.ts';

export class ReceivedProposals {
  /** Last zxid of the history before the first proposal. */
  readonly base: Durable<Zxid>;
  #last: Zxid;
  #agreed: Agreed<Zxid> | null = null;
  readonly #uncommitted: Fifo<Zxid> = new Fifo();
  /** Proposals to be acknowledged, oldest first; null until NEWLEADER has been acknowledged. */
  #unacknowledged: Fifo<Zxid> | null = null;
  /** Of those that are not committed, what was never proposed: nobody is owed an ACK of them. */
  readonly #filled = new Set<Zxid>();

  constructor(base: Durable<Zxid>) {
    this.base = base;
    this.#last = base;
  }

  /** The proposal that came last; `base` before there is one. */
  get last(): Zxid {
    return this.#last;
  }

  /** What the leader has said to be committed, whether it is durable here or not. */
  get committedUpTo(): Zxid {
    return this.#agreed ?? this.base;
  }

  /** The same; null when it has said nothing yet. */
  get agreed(): Agreed<Zxid> | null {
    return this.#agreed;
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

  /** The leader has skipped a zxid: as if it had been proposed, but there is nothing to acknowledge. */
  fill(zxid: Zxid): void {
    assert(this.follows(zxid), 'a zxid that was skipped follows the proposal before it');
    this.#last = zxid;
    this.#uncommitted.push(zxid);
    if (this.#unacknowledged === null) this.#filled.add(zxid);
  }

  /**
   * A commit is a watermark: it commits what was proposed before as well. One that says nothing new is fine.
   *
   * @returns false when no such proposal has come
   */
  commit(zxid: Zxid): boolean {
    if (zxid <= this.committedUpTo) return true;
    if (zxid > this.#last) return false;
    for (let next = this.#uncommitted.peek(); next !== undefined && next <= zxid; next = this.#uncommitted.peek()) {
      this.#uncommitted.shift();
      this.#agreed = agreedByLeader(next);
    }
    return this.#agreed === zxid;
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
      if (!this.#filled.has(zxid)) this.#unacknowledged.push(zxid);
    }
    this.#filled.clear();
  }

  /** Takes the oldest proposal that is owed an ACK, if it is not later than `upTo`; each is taken once. */
  takeUnacknowledged(upTo: Durable<Zxid>): Durable<Zxid> | null {
    const oldest = this.#unacknowledged?.peek();
    const durable = oldest === undefined ? null : durableWithin(oldest, upTo);
    if (durable !== null) this.#unacknowledged?.shift();
    return durable;
  }
}
