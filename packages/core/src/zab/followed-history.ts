import { epochOf, makeZxid, previousZxid, type Zxid } from '@meerkat/protocol';
import type { HistoryEntry } from './history.ts';
import { isNext, RecentLog } from './recent-log.ts';
import type { SyncSource } from './sync-source.ts';

/** Txns that a follower has received, kept for the observers that it feeds. */
export class FollowedHistory implements SyncSource {
  /** A follower feeds observers only once it serves. */
  readonly isEstablished = true;
  readonly #countMax: number;
  #log: RecentLog;
  #epoch = 0;
  #applied: Zxid;

  /**
   * @param base the end of the follower's history before it was sent more
   * @param countMax applied txns that are kept
   */
  constructor(base: Zxid, countMax: number) {
    this.#countMax = countMax;
    this.#log = new RecentLog({ lastZxid: base, tail: [] }, countMax);
    this.#applied = base;
  }

  get log(): RecentLog {
    return this.#log;
  }

  get epoch(): number {
    return this.#epoch;
  }

  get committed(): Zxid {
    return this.#applied;
  }

  get applied(): Zxid {
    return this.#applied;
  }

  get snapshotZxid(): Zxid {
    return epochOf(this.#applied) < this.#epoch ? makeZxid(this.#epoch, 0) : this.#applied;
  }

  get lastProposed(): Zxid {
    return epochOf(this.lastTxn) < this.#epoch ? makeZxid(this.#epoch, 0) : this.lastTxn;
  }

  get lastTxn(): Zxid {
    return this.#log.last;
  }

  beginEpoch(epoch: number): void {
    this.#epoch = epoch;
  }

  push(entry: HistoryEntry): void {
    // An Apache leader's history may have a gap: what lies before it is read from disk.
    if (!isNext(this.#log.last, entry.zxid)) {
      this.#log = new RecentLog({ lastZxid: previousZxid(entry.zxid), tail: [] }, this.#countMax);
    }
    this.#log.push(entry);
  }

  commit(watermark: Zxid): void {
    this.#applied = watermark;
  }

  /** Drops txns beyond the limit; observers have been told what is committed. */
  trim(): void {
    this.#log.trim(this.#applied);
  }
}
