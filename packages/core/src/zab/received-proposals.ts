/**
 * The zxids that a learner has been sent over its one connection: how far proposals and commits have advanced, and
 * which proposals it has yet to acknowledge.
 *
 *     base ──────────── committedUpTo ──────────── last
 *      │ the history it     │ not committed yet     │
 *      │ began with         └──── #uncommitted ─────┘
 *
 * Invariants, and what ensures them:
 *
 * 1. base ≤ committedUpTo ≤ last: `propose` takes only what follows `last`, `commit` only what was proposed.
 * 2. The proposals have no gap: the learner checks `follows` before `propose`, and calls `fill` for zxids that the
 *    leader has skipped.
 * 3. Memory is used only for txns that are not committed or not durable, never for the whole history that is sent.
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
  /** Uncommitted zxids that the leader has skipped: they are never acknowledged. */
  readonly #filled = new Set<Zxid>();

  constructor(base: Durable<Zxid>) {
    this.base = base;
    this.#last = base;
  }

  /** The last proposal received; `base` before the first. */
  get last(): Zxid {
    return this.#last;
  }

  /** Up to where the leader has announced commits, durable here or not. */
  get committedUpTo(): Zxid {
    return this.#agreed ?? this.base;
  }

  /** The same; null before the first commit. */
  get agreed(): Agreed<Zxid> | null {
    return this.#agreed;
  }

  /**
   * True when `zxid` may come next: the next of the epoch, or the first of a later one. Apache's learners accept any
   * zxid of a later epoch, so their logs may have holes (ZOOKEEPER-2846).
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

  /** The leader has skipped a zxid: handled like a proposal, but not acknowledged. */
  fill(zxid: Zxid): void {
    assert(this.follows(zxid), 'a zxid that was skipped follows the proposal before it');
    this.#last = zxid;
    this.#uncommitted.push(zxid);
    if (this.#unacknowledged === null) this.#filled.add(zxid);
  }

  /**
   * A commit is a watermark: it commits all earlier proposals as well. A repeated one is ignored.
   *
   * @returns false when no such proposal was received
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
   * From now on proposals are acknowledged: new ones, and those received before that are not committed. Committed ones
   * need no ACK: the leader had its quorum without this server.
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

  /** Takes the oldest unacknowledged proposal if it is not later than `upTo`; each is taken once. */
  takeUnacknowledged(upTo: Durable<Zxid>): Durable<Zxid> | null {
    const oldest = this.#unacknowledged?.peek();
    const durable = oldest === undefined ? null : durableWithin(oldest, upTo);
    if (durable !== null) this.#unacknowledged?.shift();
    return durable;
  }
}
