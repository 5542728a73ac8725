/**
 * Everything that a server keeps on its disk: the log, the snapshots, the epoch files.
 *
 *     recover ─► onRecovered ─┬─► append … flush ─► onLogSynced … ─► stop ─► onStorageStopped
 *                             ├─► truncate ─► onRecovered again, or onTruncateRefused
 *                             └─► installSnapshot ─► onSnapshotInstalled
 *
 * The host calls `flush` at the end of every turn: the txns appended during it go to the disk together, and a snapshot
 * that has become due begins. After `onStorageFailed` nothing is durable any more; the server stops.
 *
 * A server of an ensemble has one storage for each of its roles. At the end of a role it is stopped, and the next role
 * begins with what another one recovers; the directories stay held meanwhile (`keepsHold`, `isHeld`), and the database of
 * the first goes on as the other's, once the log behind it is replayed (`legacy`).
 */
import { formatZxid, type Txn, type TxnHeader, ZXID_NONE, type Zxid } from '@meerkat/protocol';
import { assert } from '../assert.ts';
import type { CoreOptions } from '../options.ts';
import type { Ports } from '../ports.ts';
import type { Database } from '../tree/database.ts';
import type { History } from '../zab/history.ts';
import type { Durable } from './durable.ts';
import type { EpochFileName } from './epoch-files.ts';
import { EpochWrites } from './epoch-writes.ts';
import { LogFiles } from './log-files.ts';
import { type HistoryDone, type HistoryRange, LogHistory } from './log-history.ts';
import { LogTruncation } from './log-truncation.ts';
import { type Legacy, Recovery, type RecoverySummary } from './recovery.ts';
import { Purge } from './retention.ts';
import { SnapshotInstall } from './snapshot-install.ts';
import { SnapshotTrigger } from './snapshot-trigger.ts';
import { SnapshotWrite } from './snapshot-write.ts';
import { TxnLog } from './txn-log.ts';

export type { EpochFileName } from './epoch-files.ts';
export type { HistoryDone, HistoryRange } from './log-history.ts';
export type { RecoverySummary } from './recovery.ts';

export interface StorageEvents {
  /** The newest snapshot and the log behind it, applied. */
  onRecovered(database: Database, summary: RecoverySummary, history: History): void;
  /** Everything up to here is safe. */
  onLogSynced(durable: Durable<Zxid>): void;
  /** The answer to `writeEpoch`. */
  onEpochDurable(name: EpochFileName, epoch: Durable<number>): void;
  /** `truncate` is impossible, for a reason that is told to people; everything is as before. */
  onTruncateRefused(reason: string): void;
  /** The answer to `installSnapshot`. */
  onSnapshotInstalled(): void;
  /**
   * The server must stop: the start found damage, or the disk failed. Nothing more becomes durable. Told once, and also
   * while a stop is under way: then the process has to end as well, for what another storage would read back may be in
   * the kernel's memory only.
   */
  onStorageFailed(error: Error): void;
  /** The answer to `stop`. */
  onStorageStopped(): void;
}

/** What a storage leaves to the next one of the same process. */
export interface StorageLegacy extends Legacy {
  /** Which log files there are, and where their entries end. */
  readonly logFiles: LogFiles;
}

/** After this long a server that replayed txns writes a snapshot, so that the next start is short. */
const FIRST_SNAPSHOT_AFTER_MS = 1000;

export class Storage {
  readonly #ports: Pick<Ports, 'disk' | 'clock' | 'random' | 'trace'>;
  readonly #options: CoreOptions;
  readonly #events: StorageEvents;
  /** What the recovery begins with; null: what the disk holds. */
  #legacy: StorageLegacy | null;
  readonly #logFiles: LogFiles;
  readonly #history: LogHistory;
  readonly #epochs: EpochWrites;
  readonly #trigger: SnapshotTrigger;
  #log: TxnLog;

  #database: Database | null = null;
  /** Everything up to here is durable. */
  #durableZxid: Zxid = ZXID_NONE;
  #snapshot: SnapshotWrite | null = null;
  #install: SnapshotInstall | null = null;
  /** Zxid of the newest snapshot on the disk, and its bytes. */
  #snapshotZxid = -1;
  #snapshotBytes = 0;
  #areSnapshotsAllowed = false;
  /** When a snapshot is due although few txns were appended; Infinity = not. Monotonic. */
  #snapshotDueMs = Number.POSITIVE_INFINITY;
  #purge: Purge | null = null;
  #purgeDueMs = Number.POSITIVE_INFINITY;
  #hasFailed = false;
  #isStopping = false;
  #isStopped = false;
  /** True when the stop found the database and the log to be of one history. */
  #isWhole = false;
  #keepsHold = false;
  #isHolding = false;
  #isLogClosed = false;
  /** What waits for the log to be closed, besides a stop. */
  #afterLogClosed: (() => void) | null = null;
  /** True while the directory is read or its history exchanged: nothing else happens to it. */
  #isRebuilding = false;

  /** @param legacy of the storage before this one, which has been stopped with `keepsHold` */
  constructor(
    ports: Pick<Ports, 'disk' | 'clock' | 'random' | 'trace'>,
    options: CoreOptions,
    events: StorageEvents,
    legacy: StorageLegacy | null = null,
  ) {
    this.#ports = ports;
    this.#options = options;
    this.#events = events;
    this.#legacy = legacy;
    this.#logFiles = legacy?.logFiles ?? new LogFiles();
    this.#trigger = new SnapshotTrigger(ports.random, options);
    this.#history = new LogHistory(ports.disk, options.logDirectory, this.#logFiles);
    this.#log = this.#makeLog();
    this.#epochs = new EpochWrites(ports.disk, options.snapshotDirectory, {
      onEpochWritten: (name, epoch) => {
        if (!this.#hasFailed) this.#events.onEpochDurable(name, epoch);
      },
      onEpochFailed: (name, error) => {
        this.#fail(
          new Error(`cannot write ${name}: ${error.message}. Look at the file system, then start the server again`, {
            cause: error,
          }),
        );
      },
      onEpochsClosed: () => this.#maybeFinishStopping(),
    });
  }

  /**
   * Reads what is there; `onRecovered` or `onStorageFailed` follows.
   *
   * @param options.isHeld true when the storage before this one was stopped with `keepsHold`
   */
  recover(options: { readonly isHeld: boolean } = { isHeld: false }): void {
    const { trace } = this.#ports;
    if (!this.#options.forceSync && !options.isHeld) {
      trace.emit({
        kind: 'warning',
        message:
          'forceSync is off: writes are acknowledged before they are safe, and a power cut loses the last of them',
      });
    }
    const legacy = this.#legacy;
    // A database that a truncation or a snapshot of the leader's replaces is to be forgotten.
    this.#legacy = null;
    this.#recover(options.isHeld, legacy);
  }

  #recover(isHeld: boolean, legacy: StorageLegacy | null): void {
    this.#isRebuilding = true;
    new Recovery(
      this.#ports,
      this.#options,
      { isHeld, logFiles: this.#logFiles, legacy },
      {
        onDatabaseRecovered: (database, summary, history) => this.#onDatabaseRecovered(database, summary, history),
        onRecoveryFailed: (error) => {
          this.#isRebuilding = false;
          this.#isHolding = false;
          this.#fail(error);
          this.#maybeFinishStopping();
        },
      },
    ).start();
  }

  /** Takes one txn into the log; zxids come in ascending order. Durable once `onLogSynced` has told so. */
  append(header: TxnHeader, txn: Txn, treeDigest: bigint | null): void {
    assert(this.#database !== null && !this.#isRebuilding, 'txns are appended after the recovery');
    this.#trigger.onAppended(this.#log.append(header, txn, treeDigest));
  }

  /** The same for a txn that is bytes already, as PROPOSAL carries it: header, record and digest. They are copied. */
  appendPayload(zxid: Zxid, payload: Uint8Array): void {
    assert(this.#database !== null && !this.#isRebuilding, 'txns are appended after the recovery');
    this.#trigger.onAppended(this.#log.appendPayload(zxid, payload));
  }

  /** Replaces an epoch file; `onEpochDurable` follows, in the order of the calls. */
  writeEpoch(name: EpochFileName, epoch: number): void {
    assert(this.#database !== null, 'epochs are written after the recovery');
    if (!this.#hasFailed && !this.#isStopping) this.#epochs.write(name, epoch);
  }

  /** The end of a turn. */
  flush(): void {
    this.#log.flush();
    if (this.#trigger.isDue) this.#maybeStartSnapshot();
  }

  onTick(nowMs: number): void {
    if (nowMs >= this.#snapshotDueMs) {
      // Also when one is being written: that is the one.
      this.#snapshotDueMs = Number.POSITIVE_INFINITY;
      this.#maybeStartSnapshot();
    }
    if (nowMs >= this.#purgeDueMs) this.#startPurge(nowMs);
  }

  /** When `onTick` has something to do; Infinity = never. Monotonic milliseconds. */
  nextDeadlineMs(): number {
    return Math.min(this.#snapshotDueMs, this.#purgeDueMs);
  }

  /**
   * From now on snapshots are taken, and old ones purged: what is applied is committed. A server of its own allows it at
   * once, one of an ensemble when it serves; until then it may have txns applied that it has to truncate.
   */
  allowSnapshots(): void {
    assert(this.#database !== null && !this.#isRebuilding, 'a role begins after the recovery');
    if (this.#areSnapshotsAllowed || this.#isStopping) return;
    this.#areSnapshotsAllowed = true;
    // In whole milliseconds, as `onTick` counts: a deadline in the middle of one would be due and not due at once.
    const nowMs = Math.floor(this.#ports.clock.monotonicMs());
    if (this.#database.lastZxid !== this.#snapshotZxid) this.#snapshotDueMs = nowMs + FIRST_SNAPSHOT_AFTER_MS;
    if (this.#options.purgeIntervalMs > 0) this.#purgeDueMs = nowMs;
  }

  /* ----------------------------------------------------------------------------------------------- history ---- */

  /** Bytes of the newest snapshot on the disk. */
  get newestSnapshotBytes(): number {
    return this.#snapshotBytes;
  }

  /** Bytes of the log file that has `zxid` and of all later ones; Infinity when the log begins later. */
  logBytesAfter(zxid: Zxid): number {
    return this.#logFiles.bytesFrom(zxid);
  }

  /**
   * Reads txns from the log files, those that are durable. See `LogHistory.read`; nothing is told after a stop or a
   * failure.
   */
  readHistory({ after, upTo, bytesMax }: HistoryRange, done: HistoryDone): void {
    assert(this.#database !== null && !this.#isRebuilding, 'the history is read after the recovery');
    const end = upTo < this.#durableZxid ? upTo : this.#durableZxid;
    this.#history.read({ after, upTo: end, bytesMax }, (entries) => {
      if (!this.#hasFailed && !this.#isStopping) done(entries);
    });
  }

  /**
   * Removes everything behind `zxid`, durably, and recovers anew: `onRecovered` follows, with another database. Or
   * `onTruncateRefused`, when zxid is neither a txn of the log nor the snapshot that the log begins at, or when no whole
   * snapshot is old enough; then nothing has changed. Nothing may be in flight.
   */
  truncate(zxid: Zxid): void {
    this.#rebuild(() => {
      new LogTruncation(this.#ports, this.#options, zxid, {
        onTruncated: () => {
          this.#history.clear();
          if (this.#isStopping || this.#hasFailed) this.#onRebuilt();
          else this.#recover(true, null);
        },
        onTruncateRefused: (reason) => {
          if (this.#onRebuilt()) this.#events.onTruncateRefused(reason);
        },
        onTruncateFailed: (error) => {
          this.#fail(new Error(`cannot cut the log behind 0x${formatZxid(zxid)}: ${error.message}`, { cause: error }));
          this.#onRebuilt();
        },
      }).start();
    });
  }

  /**
   * Makes a database, complete and with its last zxid set, the whole history: a snapshot of it replaces all logs and
   * snapshots. `onSnapshotInstalled` follows. Wherever that is cut short, the old history is there or the new one.
   * Nobody applies anything to the database meanwhile; afterwards it is the one that snapshots are taken of. Nothing may
   * be in flight.
   */
  installSnapshot(database: Database): void {
    this.#rebuild(() => {
      this.#install = new SnapshotInstall(this.#ports, this.#options, database, (error, bytes) => {
        this.#install = null;
        if (error !== null) {
          if (!this.#isStopping) {
            this.#fail(new Error(`cannot install the snapshot of the leader: ${error.message}`, { cause: error }));
          }
          this.#onRebuilt();
          return;
        }
        this.#history.clear();
        this.#logFiles.reset([]);
        this.#database = database;
        this.#durableZxid = database.lastZxid;
        this.#snapshotZxid = database.lastZxid;
        this.#snapshotBytes = bytes;
        this.#trigger.reset();
        if (this.#onRebuilt()) this.#events.onSnapshotInstalled();
      });
      this.#install.start();
    });
  }

  /** Closes the log, so that nobody but `work` touches the directory. */
  #rebuild(work: () => void): void {
    assert(this.#database !== null && !this.#isRebuilding, 'a history is exchanged after its recovery');
    assert(!this.#areSnapshotsAllowed, 'a history is exchanged before the server serves');
    if (this.#hasFailed || this.#isStopping) return;
    assert(this.#log.isIdle && !this.#epochs.isBusy, 'a history is exchanged while nothing is in flight');
    this.#isRebuilding = true;
    this.#afterLogClosed = work;
    this.#log.close();
  }

  /** The directory is a history again, and txns may be appended. @returns false when a stop or a failure came between */
  #onRebuilt(): boolean {
    this.#isRebuilding = false;
    if (this.#isStopping || this.#hasFailed) {
      this.#maybeFinishStopping();
      return false;
    }
    this.#log = this.#makeLog();
    this.#isLogClosed = false;
    return true;
  }

  /* ------------------------------------------------------------------------------------------------- stop ---- */

  /**
   * Finishes and syncs what was appended, gives up a snapshot in progress, closes; `onStorageStopped` follows.
   *
   * @param options.keepsHold leaves the directories held, for the storage of the next role; nothing is told meanwhile,
   *   also not what becomes durable
   */
  stop(options: { readonly keepsHold: boolean } = { keepsHold: false }): void {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#isWhole = !this.#isRebuilding;
    this.#keepsHold = options.keepsHold;
    this.#snapshotDueMs = Number.POSITIVE_INFINITY;
    this.#purgeDueMs = Number.POSITIVE_INFINITY;
    this.#snapshot?.abandon();
    this.#install?.abandon();
    this.#epochs.close();
    // A log that was closed for a rebuilding is not opened again; the answer needs an event of its own.
    if (this.#isLogClosed) this.#ports.disk.list(this.#options.logDirectory, () => this.#maybeFinishStopping());
    else this.#log.close();
  }

  /**
   * After `onStorageStopped`: what the next storage of this process can begin with. null when the directory was being
   * rebuilt, when the disk has failed, or when the database has txns that are not in the log, as that of an observer that
   * does not log: then everything is read from the disk.
   */
  get legacy(): StorageLegacy | null {
    assert(this.#isStopped, 'a storage leaves something when it has stopped');
    const database = this.#database;
    if (database === null || this.#hasFailed || !this.#isWhole || database.lastZxid > this.#durableZxid) return null;
    const snapshotZxid = this.#snapshotZxid as Zxid;
    return { database, snapshotZxid, snapshotBytes: this.#snapshotBytes, logFiles: this.#logFiles };
  }

  #makeLog(): TxnLog {
    return new TxnLog(
      this.#ports,
      this.#options,
      {
        onSynced: (durable) => {
          this.#durableZxid = durable;
          if (this.#hasFailed || this.#keepsHold) return;
          this.#events.onLogSynced(durable);
        },
        onLogFailed: (error) => this.#fail(error),
        onLogClosed: () => {
          this.#isLogClosed = true;
          const work = this.#afterLogClosed;
          this.#afterLogClosed = null;
          if (work === null) this.#maybeFinishStopping();
          else if (this.#isStopping || this.#hasFailed) this.#onRebuilt();
          else work();
        },
      },
      this.#logFiles,
    );
  }

  #onDatabaseRecovered(database: Database, summary: RecoverySummary, history: History): void {
    this.#isHolding = true;
    this.#database = database;
    this.#durableZxid = summary.lastZxid;
    this.#snapshotZxid = summary.snapshotZxid;
    this.#snapshotBytes = summary.snapshotBytes;
    // A stop during the recovery has closed the log already.
    if (this.#isStopping || this.#hasFailed) {
      this.#isRebuilding = false;
      this.#maybeFinishStopping();
      return;
    }
    if (this.#isLogClosed) this.#onRebuilt();
    this.#isRebuilding = false;
    if (this.#options.ensemble === null) this.allowSnapshots();
    this.#events.onRecovered(database, summary, history);
  }

  /** One at a time; the log begins a new file with it, so that old files can go one day. */
  #maybeStartSnapshot(): void {
    const database = this.#database;
    if (this.#snapshot !== null || database === null || this.#hasFailed || this.#isStopping) return;
    if (!this.#areSnapshotsAllowed) return;
    this.#snapshotDueMs = Number.POSITIVE_INFINITY;
    this.#trigger.reset();
    // Nothing was applied since the newest one: it would be written over itself.
    if (database.lastZxid === this.#snapshotZxid) return;
    this.#log.roll();
    const snapshot = new SnapshotWrite(this.#ports, this.#options, database, {
      onSnapshotWritten: (zxid, bytes) => {
        this.#snapshotZxid = zxid;
        this.#snapshotBytes = bytes;
        this.#onSnapshotEnded();
      },
      onSnapshotFailed: () => this.#onSnapshotEnded(),
    });
    this.#snapshot = snapshot;
    snapshot.start();
  }

  #onSnapshotEnded(): void {
    this.#snapshot = null;
    this.#maybeFinishStopping();
  }

  #startPurge(nowMs: number): void {
    this.#purgeDueMs = nowMs + this.#options.purgeIntervalMs;
    if (this.#purge !== null || this.#hasFailed || this.#isStopping) return;
    const { snapshotDirectory, logDirectory, purgeRetainCount } = this.#options;
    const retention = { snapshotDirectory, logDirectory, retainCount: purgeRetainCount };
    this.#purge = new Purge(this.#ports, retention, (removedLogs) => {
      this.#purge = null;
      this.#logFiles.forget(removedLogs);
      this.#maybeFinishStopping();
    });
    this.#purge.start();
  }

  #maybeFinishStopping(): void {
    const isIdle = this.#snapshot === null && this.#purge === null && !this.#epochs.isBusy;
    if (!this.#isStopping || this.#isStopped || this.#isRebuilding || !this.#isLogClosed || !isIdle) return;
    this.#isStopped = true;
    const { snapshotDirectory, logDirectory } = this.#options;
    // After a failure there is no next role.
    if (this.#isHolding && (!this.#keepsHold || this.#hasFailed)) {
      this.#isHolding = false;
      this.#ports.disk.release(logDirectory);
      if (snapshotDirectory !== logDirectory) this.#ports.disk.release(snapshotDirectory);
    }
    this.#events.onStorageStopped();
  }

  #fail(error: Error): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#events.onStorageFailed(error);
  }
}
