import { assert } from '../base/assert.ts';

interface AnyWrite {
  readonly kind: 'write';
  /** What it has to be logged with, about. */
  readonly bytes: number;
}

interface AnyAnswer {
  readonly kind: string;
  /** What it keeps in memory, about. */
  readonly bytes: number;
  /** A read that takes several turns. */
  isLong?: boolean;
}

/**
 * The requests of one client that wait for their turn, oldest first, and what is counted of them.
 *
 * @typeParam Write becomes a txn, and is answered by its commit
 * @typeParam Answer is answered here
 */
export class WaitingRequests<Write extends AnyWrite, Answer extends AnyAnswer> {
  readonly #requests: (Write | Answer)[] = [];
  /** Bytes of all of them, about. */
  #bytes = 0;
  /** How many of those that are no writes are counted as what the server owes. */
  #owed = 0;
  /** Of the writes that cost much, what they cost. */
  readonly #costs: Map<Write | Answer, number> = new Map();
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
   * True when no request is accepted behind them: they cost very much to apply, or one takes several turns to read, or they
   * are too many.
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

  /** No request is accepted before this moment, for others are to have the server to themselves for a while. */
  get pausedUntilMs(): number {
    return this.#pausedUntilMs;
  }

  addWrite(write: Write): void {
    this.#requests.push(write);
    this.#bytes += write.bytes;
  }

  /**
   * The newest is a write that costs so much. Others wait for whatever of this client is logged before theirs, so that
   * nothing more is accepted while its writes cost `COST_MAX` or more together.
   */
  addCost(units: number): void {
    const newest = this.#requests.at(-1);
    if (newest?.kind !== 'write') return;
    this.#cost += units - (this.#costs.get(newest) ?? 0);
    this.#costs.set(newest, units);
  }

  /** Nothing more is accepted before this moment. */
  pauseUntil(ms: number): void {
    this.#pausedUntilMs = ms;
  }

  /** The write has its txn. A client that has left meanwhile waits for nothing. */
  replaceWrite(slot: Write, proposal: Write): void {
    const at = this.#requests.indexOf(slot);
    if (at >= 0) {
      this.#requests[at] = proposal;
      this.#bytes += proposal.bytes - slot.bytes;
    }
    const cost = this.#costs.get(slot);
    if (cost === undefined) return;
    this.#costs.delete(slot);
    this.#costs.set(proposal, cost);
  }

  /** The oldest is committed. */
  removeWrite(write: Write): void {
    assert(this.#requests[0] === write, 'writes of a session are committed in the order of its requests');
    this.#requests.shift();
    this.#bytes -= write.bytes;
    if (this.#cost === 0) return;
    this.#cost -= this.#costs.get(write) ?? 0;
    this.#costs.delete(write);
  }

  /** Counted as owed until it is answered, or `oweNothing` is said. */
  add(answer: Answer): void {
    this.#requests.push(answer);
    this.#bytes += answer.bytes;
    this.#owed++;
    if (answer.isLong === true) this.#longReads++;
  }

  /** A read that waits turns out to take several turns. */
  markLong(read: Answer): void {
    if (read.isLong === true) return;
    read.isLong = true;
    this.#longReads++;
  }

  /**
   * It is answered: it is taken away, unless the client has left meanwhile.
   *
   * @returns how many less are owed, 0 or 1
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

  /** They wait for their client's sake, not for the server's. @returns how many less are owed */
  oweNothing(): number {
    const owed = this.#owed;
    this.#owed = 0;
    return owed;
  }

  /** The client has left. */
  clear(): void {
    this.#requests.length = 0;
    this.#bytes = 0;
    this.#costs.clear();
    this.#cost = 0;
    this.#longReads = 0;
  }
}

/**
 * Bytes of requests that wait, from which on no further one is read. What waits behind writes is in memory, and writes are
 * in the log's queue, where those of others wait behind them.
 */
const BYTES_MAX = 1024 * 1024;

/** What the writes of a client that wait may cost together, in units of the work meter: as much as it may have of a turn. */
export const COST_MAX = 8192;
