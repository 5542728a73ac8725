import { epochOf, makeZxid, previousZxid, type Zxid } from '@meerkat/protocol';
import type { HistoryEntry } from './history.ts';
import { isNext, RecentLog } from './recent-log.ts';
import type { SyncSource } from './sync-source.ts';

/** What a follower has been sent, as it keeps it for the observers that it feeds. */
export class FollowedHistory implements SyncSource {
  /** A follower feeds nobody before it serves. */
  readonly isEstablished = true;
  readonly #countMax: number;
  #log: RecentLog;
  #epoch = 0;
  #applied: Zxid;

  /**
   * @param base where the follower's history ended when it began to be sent more
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
    // In the history of a leader of Apache's there may be a gap: what lies before it is read from the disk.
    if (!isNext(this.#log.last, entry.zxid)) {
      this.#log = new RecentLog({ lastZxid: previousZxid(entry.zxid), tail: [] }, this.#countMax);
    }
    this.#log.push(entry);
  }

  commit(watermark: Zxid): void {
    this.#applied = watermark;
  }

  /** Drops what is too much; observers have been told of what is committed. */
  trim(): void {
    this.#log.trim(this.#applied);
  }
}
