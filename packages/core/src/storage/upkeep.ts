/**
 * Maintenance of a directory while its server serves: timely snapshots, so that a start has little to replay, and the
 * purge of the files that they make obsolete.
 *
 * Snapshots are written one at a time, in slices, while txns are appended. One is due after some txns
 * (`snapshot-trigger.ts`), and soon after a start that replayed any.
 */

import { ZXID_NONE, type Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { CoreOptions } from '../base/options.ts';
import type { Compression, Ports } from '../base/ports.ts';
import type { Database } from '../tree/database.ts';
import { Purge } from './retention.ts';
import { SnapshotTrigger } from './snapshot-trigger.ts';
import { SnapshotWrite } from './snapshot-write.ts';

/** A server that replayed txns writes a snapshot after this delay, so that the next start is short. */
const FIRST_SNAPSHOT_AFTER_MS = 1000;
const NEVER = Number.POSITIVE_INFINITY;

export interface UpkeepEvents {
  /** The log begins a new file with each snapshot, so that old files can be purged. */
  onSnapshotBegins(): void;
  /** These log files were removed. */
  onLogsPurged(names: readonly string[]): void;
  /** A snapshot or a purge has ended, successfully or not. */
  onUpkeepRests(): void;
}

/** The newest snapshot on disk. */
export interface NewestSnapshotFile {
  readonly zxid: Zxid;
  readonly compression: Compression | null;
  /** Uncompressed size. */
  readonly bytes: number;
}

/** Before the first snapshot. */
export const NO_SNAPSHOT: NewestSnapshotFile = { zxid: ZXID_NONE, compression: null, bytes: 0 };

export class Upkeep {
  readonly #ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'clock' | 'random' | 'trace'>;
  readonly #options: CoreOptions;
  readonly #events: UpkeepEvents;
  readonly #trigger: SnapshotTrigger;
  /** What snapshots are taken of. */
  #database: Database | null = null;
  #newest: NewestSnapshotFile = NO_SNAPSHOT;
  #snapshot: SnapshotWrite | null = null;
  /** Called when the snapshot in progress has ended. */
  #awaiting: ((newest: NewestSnapshotFile | null) => void)[] = [];
  #purge: Purge | null = null;
  #isAllowed = false;
  #isEnded = false;
  /** When a snapshot is due although few txns were appended; Infinity = never. Monotonic milliseconds. */
  #snapshotDueMs = NEVER;
  #purgeDueMs = NEVER;

  constructor(
    ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'clock' | 'random' | 'trace'>,
    options: CoreOptions,
    events: UpkeepEvents,
  ) {
    this.#ports = ports;
    this.#options = options;
    this.#events = events;
    this.#trigger = new SnapshotTrigger(ports.random, options);
  }

  get newest(): NewestSnapshotFile {
    return this.#newest;
  }

  get isAllowed(): boolean {
    return this.#isAllowed;
  }

  /** True when neither a snapshot nor a purge is in progress. */
  get isAtRest(): boolean {
    return this.#snapshot === null && this.#purge === null;
  }

  /** The directory holds this database, and this is its newest snapshot. */
  follow(database: Database, newest: NewestSnapshotFile): void {
    this.#database = database;
    this.#newest = newest;
  }

  /** A snapshot of the whole database was installed: the next one is counted from here. */
  restartCount(): void {
    this.#trigger.reset();
  }

  /** From now on snapshots are taken, and old ones purged. */
  allow(): void {
    const database = this.#database;
    assert(database !== null, 'the database of the upkeep is set');
    if (this.#isAllowed || this.#isEnded) return;
    this.#isAllowed = true;
    // In whole milliseconds, the resolution of `onTick`: with a fraction, a deadline would be due but not yet reached.
    const nowMs = Math.floor(this.#ports.clock.monotonicMs());
    if (database.lastZxid !== this.#newest.zxid) this.#snapshotDueMs = nowMs + FIRST_SNAPSHOT_AFTER_MS;
    if (this.#options.purgeIntervalMs > 0) this.#purgeDueMs = nowMs;
  }

  /** @param bytes size of the txn's entry in the log */
  onAppended(bytes: number): void {
    this.#trigger.onAppended(bytes);
  }

  /** The end of a turn: a snapshot that is due begins. */
  onTurnEnd(): void {
    if (this.#trigger.isDue) this.#maybeStartSnapshot();
  }

  onTick(nowMs: number): void {
    if (nowMs >= this.#snapshotDueMs) {
      // Even if a snapshot is in progress: it counts as the one that is due.
      this.#snapshotDueMs = NEVER;
      this.#maybeStartSnapshot();
    }
    if (nowMs >= this.#purgeDueMs) this.#startPurge(nowMs);
  }

  /**
   * Writes a snapshot now, unless the newest one is up to date.
   *
   * @param done called once, possibly synchronously: null when it has failed, or when none may be taken
   */
  take(done: (newest: NewestSnapshotFile | null) => void): void {
    const database = this.#database;
    if (database === null || this.#isEnded || !this.#isAllowed) {
      done(null);
    } else if (this.#snapshot !== null) {
      // The snapshot in progress began before this call.
      this.#awaiting.push(() => this.take(done));
    } else if (database.lastZxid === this.#newest.zxid) {
      done(this.#newest);
    } else {
      this.#awaiting.push(done);
      this.#maybeStartSnapshot();
    }
  }

  /** When `onTick` has to be called; Infinity = never. Monotonic milliseconds. */
  get dueMs(): number {
    return Math.min(this.#snapshotDueMs, this.#purgeDueMs);
  }

  /** Nothing new begins. */
  end(): void {
    this.#isEnded = true;
  }

  /** The same, and a snapshot in progress is aborted. */
  abandon(): void {
    this.#isEnded = true;
    this.#snapshotDueMs = NEVER;
    this.#purgeDueMs = NEVER;
    this.#snapshot?.abandon();
  }

  #maybeStartSnapshot(): void {
    const database = this.#database;
    if (this.#snapshot !== null || database === null || this.#isEnded || !this.#isAllowed) return;
    this.#snapshotDueMs = NEVER;
    this.#trigger.reset();
    // Nothing was applied since the newest one: it would be overwritten with itself.
    if (database.lastZxid === this.#newest.zxid) return;
    this.#events.onSnapshotBegins();
    const snapshot = new SnapshotWrite(this.#ports, this.#options, database, {
      onSnapshotWritten: (zxid, bytes) => {
        this.#newest = { zxid, bytes, compression: this.#options.snapshotCompression };
        this.#onSnapshotEnded(this.#newest);
      },
      onSnapshotFailed: () => this.#onSnapshotEnded(null),
    });
    this.#snapshot = snapshot;
    snapshot.start();
  }

  #onSnapshotEnded(newest: NewestSnapshotFile | null): void {
    this.#snapshot = null;
    const awaiting = this.#awaiting;
    this.#awaiting = [];
    for (const done of awaiting) done(newest);
    this.#events.onUpkeepRests();
  }

  #startPurge(nowMs: number): void {
    this.#purgeDueMs = nowMs + this.#options.purgeIntervalMs;
    if (this.#purge !== null || this.#isEnded) return;
    const { snapshotDirectory, logDirectory, purgeRetainCount } = this.#options;
    const retention = { snapshotDirectory, logDirectory, retainCount: purgeRetainCount };
    this.#purge = new Purge(this.#ports, retention, (removedLogs) => {
      this.#purge = null;
      this.#events.onLogsPurged(removedLogs);
      this.#events.onUpkeepRests();
    });
    this.#purge.start();
  }
}
