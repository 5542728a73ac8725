import { assert } from '../base/assert.ts';

interface AnyWrite {
  readonly kind: 'write';
  /** Approximate size in the log. */
  readonly bytes: number;
}

interface AnyAnswer {
  readonly kind: string;
  /** Approximate memory use. */
  readonly bytes: number;
  /** A read that takes several turns. */
  isLong?: boolean;
}

/**
 * The waiting requests of one client, oldest first, with their total size and cost.
 *
 * @typeParam Write becomes a txn, and is answered by its commit
 * @typeParam Answer is answered here
 */
export class WaitingRequests<Write extends AnyWrite, Answer extends AnyAnswer> {
  readonly #requests: (Write | Answer)[] = [];
  /** Approximate bytes of all requests. */
  #bytes = 0;
  /** Number of `Answer` requests that count as owed by the server. */
  #owed = 0;
  /** Costs of the expensive writes. */
  readonly #costs: WeakMap<AnyWrite | AnyAnswer, number> = new WeakMap();
  /** Total cost. */
  #cost = 0;
  #pausedUntilMs = 0;
  #longReads = 0;

  get length(): number {
    return this.#requests.length;
  }

  get oldest(): Write | Answer | undefined {
    return this.#requests[0];
  }

  /** True while one of them takes several turns. */
  get hasLongReads(): boolean {
    return this.#longReads > 0;
  }

  /**
   * True when no further request may be accepted: these cost too much to apply, one is a long read, or there are too
   * many.
   *
   * @param countMax requests of one session that may wait
   * @param isOverloaded the server owes more answers than it may
   */
  isFull(countMax: number, isOverloaded: boolean): boolean {
    const { length } = this.#requests;
    if (length === 0) return false;
    if (length >= countMax || this.#cost >= COST_MAX) return true;
    return this.#longReads > 0 || this.#bytes >= BYTES_MAX || isOverloaded;
  }

  /** No request is accepted before this time, to leave the server to other clients for a while. */
  get pausedUntilMs(): number {
    return this.#pausedUntilMs;
  }

  addWrite(write: Write): void {
    this.#requests.push(write);
    this.#bytes += write.bytes;
  }

  /**
   * Sets the cost of the newest request, a write. Writes of other clients wait for all writes logged before them, so
   * nothing more is accepted while the writes of this client together cost `COST_MAX` or more.
   */
  addCost(units: number): void {
    const newest = this.#requests.at(-1);
    if (newest?.kind !== 'write') return;
    this.#cost += units - (this.#costs.get(newest) ?? 0);
    this.#costs.set(newest, units);
  }

  pauseUntil(ms: number): void {
    this.#pausedUntilMs = ms;
  }

  /** The write has its txn. No-op if the client has left meanwhile. */
  replaceWrite(slot: Write, proposal: Write): void {
    const at = this.#requests.indexOf(slot);
    if (at >= 0) {
      this.#requests[at] = proposal;
      this.#bytes += proposal.bytes - slot.bytes;
    }
    const cost = this.#costs.get(slot);
    if (cost !== undefined) this.#costs.set(proposal, cost);
  }

  /** Removes the oldest request, whose txn is applied. */
  removeWrite(write: Write): void {
    assert(this.#requests[0] === write, 'writes of a session are committed in the order of its requests');
    this.#requests.shift();
    this.#bytes -= write.bytes;
    if (this.#cost > 0) this.#cost -= this.#costs.get(write) ?? 0;
  }

  /** Counts as owed until it is answered or `clearOwed` is called. */
  add(answer: Answer): void {
    this.#requests.push(answer);
    this.#bytes += answer.bytes;
    this.#owed++;
    if (answer.isLong === true) this.#longReads++;
  }

  /** A waiting read turns out to take several turns. */
  markLong(read: Answer): void {
    if (read.isLong === true) return;
    read.isLong = true;
    this.#longReads++;
  }

  /**
   * Removes an answered request, unless the client has left meanwhile.
   *
   * @returns the number of requests that are no longer owed, 0 or 1
   */
  remove(answer: Answer): number {
    if (this.#requests[0] !== answer) return 0;
    this.#requests.shift();
    this.#bytes -= answer.bytes;
    if (answer.isLong === true) this.#longReads--;
    if (this.#owed === 0) return 0;
    this.#owed--;
    return 1;
  }

  /** The requests wait for their client, not for the server. @returns the number of requests that are no longer owed */
  clearOwed(): number {
    const owed = this.#owed;
    this.#owed = 0;
    return owed;
  }

  /** The client has left. */
  clear(): void {
    this.#requests.length = 0;
    this.#bytes = 0;
    this.#cost = 0;
    this.#longReads = 0;
  }
}

/**
 * Bytes of waiting requests at which no further one is read. They are held in memory, and writes of other clients wait
 * behind these writes in the log's queue.
 */
const BYTES_MAX = 1024 * 1024;

/** Total cost of a client's waiting writes, in units of the work meter: its share of a turn. */
export const COST_MAX = 8192;
