import type { Zxid } from '@meerkat/protocol';
import type { SeededRandom } from '../seeded-random.ts';
import type { Timeline } from '../timeline.ts';

/** A txn as sent and logged: header, record, digest. */
export interface LogRecord {
  readonly zxid: Zxid;
  readonly payload: Uint8Array;
}

export interface SavedSnapshot {
  readonly zxid: Zxid;
  /** The body of a snapshot file, without the signature of the stream. */
  readonly bytes: Uint8Array;
}

/**
 * Persistent state of a 3.8.0 server: log, newest snapshot, epochs. Two watermarks: written data survives a crash of
 * the process, synced data survives a crash of the machine.
 */
export class ApacheDisk {
  acceptedEpoch = 0;
  currentEpoch = 0;
  snapshot: SavedSnapshot | null = null;
  #syncedSnapshot: SavedSnapshot | null = null;
  #log: LogRecord[] = [];
  #syncedCount = 0;

  /** The written txns. */
  get log(): readonly LogRecord[] {
    return this.#log;
  }

  /** How many of the written txns have been synced. */
  get syncedCount(): number {
    return this.#syncedCount;
  }

  write(records: readonly LogRecord[]): void {
    this.#log.push(...records);
  }

  sync(): void {
    this.#syncedCount = this.#log.length;
  }

  /** An unsynced snapshot is lost when the machine crashes; 3.8.0 syncs a received one. */
  save(snapshot: SavedSnapshot, isSynced: boolean): void {
    this.snapshot = snapshot;
    if (isSynced) this.#syncedSnapshot = snapshot;
  }

  /**
   * `FileTxnLog.truncate`: keeps everything up to the first record that is not below `zxid`, and does not sync.
   *
   * @returns false when there is no such record: the server exits then
   */
  truncate(zxid: Zxid): boolean {
    const at = this.#log.findIndex((record) => record.zxid >= zxid);
    if (at < 0) return false;
    this.#log.length = at + 1;
    this.#syncedCount = Math.min(this.#syncedCount, at + 1);
    return true;
  }

  /** The machine loses power. */
  losePower(): void {
    this.#log.length = this.#syncedCount;
    this.snapshot = this.#syncedSnapshot;
  }
}

export interface LogThreadHost {
  readonly timeline: Timeline;
  readonly random: SeededRandom;
  readonly timings: { readonly logSyncMinMs: number; readonly logSyncMaxMs: number };
}

/** The logging thread (SyncRequestProcessor): takes all queued txns, writes them, syncs, and reports each one. */
export class LogThread {
  readonly #host: LogThreadHost;
  readonly #disk: ApacheDisk;
  readonly #onSynced: (zxid: Zxid) => void;
  #queue: LogRecord[] = [];
  #isBusy = false;
  #isDead = false;

  constructor(host: LogThreadHost, disk: ApacheDisk, onSynced: (zxid: Zxid) => void) {
    this.#host = host;
    this.#disk = disk;
    this.#onSynced = onSynced;
  }

  append(record: LogRecord): void {
    this.#queue.push(record);
    if (!this.#isBusy) this.#take();
  }

  /** The role is over: queued txns are written and synced, but not reported. */
  drain(): void {
    this.kill();
    this.#disk.write(this.#queue);
    this.#queue = [];
    this.#disk.sync();
  }

  /** The process is killed: queued txns are lost. */
  kill(): void {
    this.#isDead = true;
  }

  #take(): void {
    const { timeline, random, timings } = this.#host;
    this.#isBusy = true;
    timeline.after(0, () => {
      if (this.#isDead) return;
      const batch = this.#queue;
      this.#queue = [];
      this.#disk.write(batch);
      const span = timings.logSyncMaxMs - timings.logSyncMinMs;
      timeline.after(timings.logSyncMinMs + random.fraction() * span, () => {
        if (this.#isDead) return;
        this.#disk.sync();
        for (const { zxid } of batch) if (!this.#isDead) this.#onSynced(zxid);
        this.#isBusy = false;
        if (this.#queue.length > 0 && !this.#isDead) this.#take();
      });
    });
  }
}
