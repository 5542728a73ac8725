/**
 * How far the events of a watch have arrived.
 *
 *     ── all have arrived ──► zxid ── part of a txn may have arrived ──► newest event
 *                               └─ from here on they may be missed once a connection is lost, until the gap is reported
 */
export class EventCoverage {
  #zxid = 0n;
  #newest = 0n;
  #lacksZxids = false;
  #gaps = -1;
  /**
   * A connection was lost, and the watch is not rearmed yet: the zxid from which on events may be missed. Events may
   * arrive before the gap is reported, when the client has more watches than one request arms. null: there is a
   * connection.
   */
  #missingFrom: bigint | null = null;

  /** All events up to here have been taken from the watch. */
  get zxid(): bigint {
    return this.#zxid;
  }

  /** An event without a zxid, as from servers before 3.9, has arrived on this connection. */
  get lacksZxids(): boolean {
    return this.#lacksZxids;
  }

  /** Number of gaps: a read during which it has grown proves nothing about the present. */
  get gaps(): number {
    return this.#gaps;
  }

  /** Before that, nothing can be missed. */
  get isArmed(): boolean {
    return this.#gaps >= 0;
  }

  get isInterrupted(): boolean {
    return this.#missingFrom !== null;
  }

  /** An event has arrived of a txn of which others may follow. */
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

  /** The watch is rearmed. @returns the zxid from which on events may have been missed */
  onGap(): bigint {
    const from = this.#missingFrom ?? this.#missing;
    this.#gaps++;
    this.#lacksZxids = false;
    this.#missingFrom = null;
    return from;
  }

  /** It is rearmed, but perhaps at a service that has gone back: another gap follows once that is decided. */
  onDoubt(): void {
    this.#gaps++;
    this.#missingFrom ??= this.#missing;
  }

  /** Of a multi, only some events may have arrived. */
  get #missing(): bigint {
    return this.isAhead ? this.#newest : this.#zxid + 1n;
  }
}
