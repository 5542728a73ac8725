/**
 * How a learner makes the epoch of its leader its own, and from when on it serves clients in it.
 *
 *     NEWLEADER ─► the history before it is durable ─► currentEpoch is ─► ACK(e,0)
 *     UPTODATE  ─► what is committed by then has been told as committed ─► ACK(e,0), clients are served
 */
import type { Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import { type Durable, durableWithin } from '../base/durable.ts';

export class EpochAdoption {
  /** Where the history before NEWLEADER ends. */
  #historyEnd: Zxid;
  #isBeingWritten = false;
  #epoch: Durable<number> | null = null;
  /** What has to be told as committed before clients are served. */
  #servesFrom: Zxid;

  constructor(lastZxid: Zxid) {
    this.#historyEnd = lastZxid;
    this.#servesFrom = lastZxid;
  }

  onNewLeader(historyEnd: Zxid): void {
    this.#historyEnd = historyEnd;
  }

  onUpToDate(committedUpTo: Zxid): void {
    this.#servesFrom = committedUpTo;
  }

  /**
   * With currentEpoch = e this server outranks all of older epochs, so it must have the history of e by then.
   *
   * @returns that history, once it is durable and once only: the epoch is to be written; else null
   */
  takeHistory(durable: Durable<Zxid>): Durable<Zxid> | null {
    if (this.#isBeingWritten) return null;
    const history = durableWithin(this.#historyEnd, durable);
    this.#isBeingWritten = history !== null;
    return history;
  }

  /** currentEpoch is on the disk, and everything up to `durable`. */
  onWritten(epoch: Durable<number>, durable: Zxid): void {
    assert(durable >= this.#historyEnd, 'an epoch is adopted with its history');
    this.#epoch = epoch;
  }

  /** @returns the epoch, once what has been told as committed is enough to serve clients; else null */
  servedBy(committed: Zxid): Durable<number> | null {
    if (committed < this.#servesFrom) return null;
    assert(this.#epoch !== null, 'clients are served in an epoch that was adopted');
    return this.#epoch;
  }
}
