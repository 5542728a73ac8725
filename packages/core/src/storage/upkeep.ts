/**
 * The upkeep of a directory while its server serves: snapshots in time, so that a start has little to replay, and the purge
 * of the files that they make superfluous.
 *
 * A snapshot is written in slices while txns go on, one at a time. It is due after some txns (`snapshot-trigger.ts`), and
 * soon after a start that replayed any.
 */

import { ZXID_NONE, type Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { CoreOptions } from '../base/options.ts';
import type { Compression, Ports } from '../base/ports.ts';
import type { Database } from '../tree/database.ts';
import { Purge } from './retention.ts';
import { SnapshotTrigger } from './snapshot-trigger.ts';
import { SnapshotWrite } from './snapshot-write.ts';

/** After this long a server that replayed txns writes a snapshot, so that the next start is short. */
const FIRST_SNAPSHOT_AFTER_MS = 1000;
const NEVER = Number.POSITIVE_INFINITY;

export interface UpkeepEvents {
  /** The log begins a new file with a snapshot, so that old files can go one day. */
  onSnapshotBegins(): void;
  /** These log files are gone. */
  onLogsPurged(names: readonly string[]): void;
  /** A snapshot or a purge is over, however it ended. */
  onUpkeepRests(): void;
}

/** The newest snapshot on the disk. */
export interface NewestSnapshotFile {
  readonly zxid: Zxid;
  readonly compression: Compression | null;
  /** Before they were compressed. */
  readonly bytes: number;
}

/** Before there is one. */
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
  /** Told when the snapshot that is being written has ended. */
  #awaiting: ((newest: NewestSnapshotFile | null) => void)[] = [];
  #purge: Purge | null = null;
  #isAllowed = false;
  #isEnded = false;
  /** When a snapshot is due although few txns were appended; Infinity = not. Monotonic. */
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

  /** True when nothing is under way. */
  get isAtRest(): boolean {
    return this.#snapshot === null && this.#purge === null;
  }

  /** The directory holds this database, and this is its newest snapshot. */
  follow(database: Database, newest: NewestSnapshotFile): void {
    this.#database = database;
    this.#newest = newest;
  }

  /** A snapshot of the whole database has come from elsewhere: the next one is counted from here. */
  restartCount(): void {
    this.#trigger.reset();
  }

  /** From now on snapshots are taken, and old ones purged. */
  allow(): void {
    const database = this.#database;
    assert(database !== null, 'upkeep is of a database');
    if (this.#isAllowed || this.#isEnded) return;
    this.#isAllowed = true;
    // In whole milliseconds, as `onTick` counts: a deadline in the middle of one would be due and not due at once.
    const nowMs = Math.floor(this.#ports.clock.monotonicMs());
    if (database.lastZxid !== this.#newest.zxid) this.#snapshotDueMs = nowMs + FIRST_SNAPSHOT_AFTER_MS;
    if (this.#options.purgeIntervalMs > 0) this.#purgeDueMs = nowMs;
  }

  /** @param bytes of the txn's entry in the log */
  onAppended(bytes: number): void {
    this.#trigger.onAppended(bytes);
  }

  /** The end of a turn: a snapshot that has become due begins. */
  onTurnEnd(): void {
    if (this.#trigger.isDue) this.#maybeStartSnapshot();
  }

  onTick(nowMs: number): void {
    if (nowMs >= this.#snapshotDueMs) {
      // Also when one is being written: that is the one.
      this.#snapshotDueMs = NEVER;
      this.#maybeStartSnapshot();
    }
    if (nowMs >= this.#purgeDueMs) this.#startPurge(nowMs);
  }

  /**
   * Writes a snapshot now, unless the newest one has everything already.
   *
   * @param done told once, perhaps at once: null when it has failed, or when none may be taken
   */
  take(done: (newest: NewestSnapshotFile | null) => void): void {
    const database = this.#database;
    if (database === null || this.#isEnded || !this.#isAllowed) {
      done(null);
    } else if (this.#snapshot !== null) {
      // What is being written began before the question.
      this.#awaiting.push(() => this.take(done));
    } else if (database.lastZxid === this.#newest.zxid) {
      done(this.#newest);
    } else {
      this.#awaiting.push(done);
      this.#maybeStartSnapshot();
    }
  }

  /** When `onTick` has something to do; Infinity = never. Monotonic milliseconds. */
  get dueMs(): number {
    return Math.min(this.#snapshotDueMs, this.#purgeDueMs);
  }

  /** Nothing begins any more. */
  end(): void {
    this.#isEnded = true;
  }

  /** The same, and a snapshot in progress is given up. */
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
    // Nothing was applied since the newest one: it would be written over itself.
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
