/**
 * How a learner adopts the epoch of its leader, and when it starts to serve clients in it.
 *
 *     NEWLEADER ─► the history before it is durable ─► currentEpoch is ─► ACK(e,0)
 *     UPTODATE  ─► what is committed by then has been reported as committed ─► ACK(e,0), clients are served
 */
import type { Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import { type Durable, durableWithin } from '../base/durable.ts';

export class EpochAdoption {
  /** Where the history before NEWLEADER ends. */
  #historyEnd: Zxid;
  #isBeingWritten = false;
  #epoch: Durable<number> | null = null;
  /** What must be reported as committed before clients are served. */
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
   * With currentEpoch = e this server outranks all servers of older epochs, so it must hold the history of e by then.
   *
   * @returns that history once it is durable, the first time only: the epoch is to be written then; otherwise null
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

  /** @returns the epoch, once enough has been reported as committed to serve clients; otherwise null */
  servedBy(committed: Zxid): Durable<number> | null {
    if (committed < this.#servesFrom) return null;
    assert(this.#epoch !== null, 'clients are served in an epoch that was adopted');
    return this.#epoch;
  }
}
