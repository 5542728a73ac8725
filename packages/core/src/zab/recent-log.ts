/**
 * The newest txns in memory: committed ones, from which learners catch up, followed by the outstanding ones.
 *
 *     floor │ entry  entry  entry  entry │ entry  entry │
 *           │        committed           │ outstanding  │ last
 *
 * Invariants, and what ensures them:
 *
 * 1. `floor` is a point of this server's history: its last txn before the first entry, or where the history began.
 * 2. There is no gap between `floor` and `last`: `push` checks this, and the constructor drops what precedes a gap
 *    (ZOOKEEPER-2418, 4925).
 * 3. Only txns that are committed and applied are dropped, oldest first.
 */
import { counterOf, epochOf, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { History, HistoryEntry } from './history.ts';
import { isPlaceholder } from './placeholder.ts';

/** Limit of payload bytes: beyond it the oldest txns are dropped, however few there are. */
const BYTES_MAX = 16 * 1024 * 1024;
/** Number of dropped entries at the head of the array before it is compacted. */
const DROPPED_MAX = 512;

/** True when no txn can lie between these two: the next of the epoch, or the first of a later one. */
export function isNext(zxid: Zxid, next: Zxid): boolean {
  return epochOf(next) === epochOf(zxid) ? next === zxid + 1 : epochOf(next) > epochOf(zxid) && counterOf(next) === 1;
}

export class RecentLog {
  readonly #countMax: number;
  #entries: HistoryEntry[];
  /** Index of the oldest entry; entries before it have been dropped. */
  #head = 0;
  #floor: Zxid;
  #bytes = 0;

  /** @param countMax number of applied txns to keep */
  constructor(history: { readonly lastZxid: Zxid } & Pick<History, 'tail'>, countMax: number) {
    this.#countMax = countMax;
    const { lastZxid, tail } = history;
    let first = tail.length - 1;
    while (first > 0 && isNext(tail[first - 1]!.zxid, tail[first]!.zxid)) first--;
    assert(tail.length === 0 || tail.at(-1)!.zxid === lastZxid, 'the tail of the history ends where the history does');
    this.#floor = tail[first]?.zxid ?? lastZxid;
    this.#entries = tail.slice(first + 1);
    for (const { payload } of this.#entries) this.#bytes += payload.length;
    this.trim(lastZxid);
  }

  get floor(): Zxid {
    return this.#floor;
  }

  get last(): Zxid {
    return this.#entries.length > this.#head ? this.#entries.at(-1)!.zxid : this.#floor;
  }

  get length(): number {
    return this.#entries.length - this.#head;
  }

  /** @param index 0 is the oldest entry */
  at(index: number): HistoryEntry {
    const entry = this.#entries[this.#head + index];
    assert(entry !== undefined && index >= 0, 'there is an entry at this index');
    return entry;
  }

  push(entry: HistoryEntry): void {
    assert(isNext(this.last, entry.zxid), 'the log has no gap');
    this.#entries.push(entry);
    this.#bytes += entry.payload.length;
  }

  /** Index of the first entry that is later than `zxid`; `length` when there is none. */
  indexAfter(zxid: Zxid): number {
    let low = this.#head;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#entries[middle]!.zxid > zxid) high = middle;
      else low = middle + 1;
    }
    return low - this.#head;
  }

  /** The last point of the history not later than `zxid`, which must not lie before `floor`. */
  pointAt(zxid: Zxid): Zxid {
    assert(zxid >= this.#floor, 'the point lies within what is remembered');
    const index = this.indexAfter(zxid);
    return index === 0 ? this.#floor : this.at(index - 1).zxid;
  }

  /** The last txn not later than `zxid` that is no placeholder. `floor` counts as one. */
  recordAt(zxid: Zxid): Zxid {
    assert(zxid >= this.#floor, 'the point lies within what is remembered');
    let index = this.indexAfter(zxid) - 1;
    while (index >= 0 && isPlaceholder(this.at(index).payload)) index--;
    return index < 0 ? this.#floor : this.at(index).zxid;
  }

  /** Drops the oldest applied txns while a limit is exceeded. */
  trim(applied: Zxid): void {
    while (this.length > 0 && (this.#bytes > BYTES_MAX || this.length > this.#countMax)) {
      const oldest = this.#entries[this.#head]!;
      // Outstanding txns count as well: the more of them, the fewer old ones are kept.
      if (oldest.zxid > applied) return;
      this.#floor = oldest.zxid;
      this.#bytes -= oldest.payload.length;
      this.#entries[this.#head++] = DROPPED;
      if (this.#head > DROPPED_MAX && this.#head * 2 > this.#entries.length) {
        this.#entries = this.#entries.slice(this.#head);
        this.#head = 0;
      }
    }
  }
}

/** Replaces dropped entries, so that their payloads can be collected. */
const DROPPED: HistoryEntry = { zxid: ZXID_ZERO, payload: new Uint8Array(0) };
