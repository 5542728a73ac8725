/**
 * Up to where the events of a watch have come.
 *
 *     ── all have come ──► zxid ── some of a txn may have come ──► newest event
 *                            └─ from here on they may be missed, once a connection is lost, until the gap says so
 */
export class EventCoverage {
  #zxid = 0n;
  #newest = 0n;
  #lacksZxids = false;
  #gaps = -1;
  /**
   * A connection was lost, and the watch has not said yet that it is armed again: from where on something may be missed. Events
   * may come before it says so, when the client has more watches than one request arms. null: there is a connection.
   */
  #missingFrom: bigint | null = null;

  /** All events up to here have been taken off the watch. */
  get zxid(): bigint {
    return this.#zxid;
  }

  /** An event came without its zxid, as from servers before 3.9, over this connection. */
  get lacksZxids(): boolean {
    return this.#lacksZxids;
  }

  /** Times that events may have been missed: a reading during which it has grown is not sure of anything. */
  get gaps(): number {
    return this.#gaps;
  }

  /** Before that there is nothing that could be missed. */
  get isArmed(): boolean {
    return this.#gaps >= 0;
  }

  get isInterrupted(): boolean {
    return this.#missingFrom !== null;
  }

  /** An event has come of a txn of which others may still come. */
  get isAhead(): boolean {
    return this.#newest > this.#zxid;
  }

  arm(zxid: bigint): void {
    this.#zxid = zxid;
    this.#gaps = 0;
  }

  onEvent(zxid: bigint | null): void {
    if (zxid === null) this.#lacksZxids = true;
    else if (zxid > this.#newest) this.#newest = zxid;
  }

  /** @param zxid larger than the last one */
  advance(zxid: bigint): void {
    this.#zxid = zxid;
  }

  onConnectionLost(): void {
    this.#missingFrom ??= this.#missing;
  }

  /** The watch is armed again. @returns from where on events may have been missed */
  onGap(): bigint {
    const from = this.#missingFrom ?? this.#missing;
    this.#gaps++;
    this.#lacksZxids = false;
    this.#missingFrom = null;
    return from;
  }

  /** It is armed again, but perhaps at a service that has gone back: another gap follows once that is decided. */
  onDoubt(): void {
    this.#gaps++;
    this.#missingFrom ??= this.#missing;
  }

  /** Of a multi some events may have come and others not. */
  get #missing(): bigint {
    return this.isAhead ? this.#newest : this.#zxid + 1n;
  }
}
