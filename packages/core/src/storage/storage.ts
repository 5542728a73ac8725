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
import { formatZxid, type Txn, type TxnHeader, type Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import { type Durable, NOTHING_DURABLE, onDisk } from '../base/durable.ts';
import type { CoreOptions } from '../base/options.ts';
import type { Ports } from '../base/ports.ts';
import type { Database } from '../tree/database.ts';
import type { History } from '../zab/history.ts';
import { DurableMark } from './durable-mark.ts';
import type { EpochFileName } from './epoch-files.ts';
import { EpochWrites } from './epoch-writes.ts';
import { LogFiles } from './log-files.ts';
import { type HistoryDone, type HistoryRange, LogHistory } from './log-history.ts';
import { LogTruncation } from './log-truncation.ts';
import { type Legacy, Recovery, type RecoverySummary } from './recovery.ts';
import { SnapshotInstall } from './snapshot-install.ts';
import { TxnLog } from './txn-log.ts';
import { Upkeep } from './upkeep.ts';

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
  /** The answer to `installSnapshot`: the history ends here. */
  onSnapshotInstalled(lastZxid: Durable<Zxid>): void;
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

export class Storage {
  readonly #ports: Pick<Ports, 'disk' | 'clock' | 'random' | 'trace'>;
  readonly #options: CoreOptions;
  readonly #events: StorageEvents;
  /** What the recovery begins with; null: what the disk holds. */
  #legacy: StorageLegacy | null;
  readonly #logFiles: LogFiles;
  readonly #history: LogHistory;
  readonly #epochs: EpochWrites;
  readonly #mark: DurableMark;
  readonly #upkeep: Upkeep;
  #log: TxnLog;

  #database: Database | null = null;
  /** Everything up to here is durable. */
  #durableZxid: Durable<Zxid> = NOTHING_DURABLE;
  #install: SnapshotInstall | null = null;
  #hasFailed = false;
  #isStopping = false;
  #isStopped = false;
  /** True when the stop found the database and the log to be of one history. */
  #isWhole = false;
  #keepsHold = false;
  #isHolding = false;
  #isMarkClosed = false;
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
    this.#upkeep = new Upkeep(ports, options, {
      onSnapshotBegins: () => this.#log.roll(),
      onLogsPurged: (names) => this.#logFiles.forget(names),
      onUpkeepRests: () => this.#maybeFinishStopping(),
    });
    this.#history = new LogHistory(ports.disk, options.logDirectory, this.#logFiles);
    this.#log = this.#makeLog();
    this.#mark = new DurableMark(ports, options.snapshotDirectory);
    this.#epochs = new EpochWrites(ports.disk, options.snapshotDirectory, {
      onEpochWritten: (name, epoch) => {
        if (name === 'acceptedEpoch') this.#mark.enter(epoch);
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
      { isHeld, logFiles: this.#logFiles, legacy, mark: this.#mark },
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
    this.#upkeep.onAppended(this.#log.append(header, txn, treeDigest));
  }

  /** The same for a txn that is bytes already, as PROPOSAL carries it: header, record and digest. They are copied. */
  appendPayload(zxid: Zxid, payload: Uint8Array): void {
    assert(this.#database !== null && !this.#isRebuilding, 'txns are appended after the recovery');
    this.#upkeep.onAppended(this.#log.appendPayload(zxid, payload));
  }

  /** Replaces an epoch file; `onEpochDurable` follows, in the order of the calls. */
  writeEpoch(name: EpochFileName, epoch: number): void {
    assert(this.#database !== null, 'epochs are written after the recovery');
    if (!this.#hasFailed && !this.#isStopping) this.#epochs.write(name, epoch);
  }

  /** The end of a turn. */
  flush(): void {
    this.#log.flush();
    this.#upkeep.onTurnEnd();
  }

  onTick(nowMs: number): void {
    this.#upkeep.onTick(nowMs);
    this.#mark.onTick(nowMs);
  }

  /** When `onTick` has something to do; Infinity = never. Monotonic milliseconds. */
  nextDeadlineMs(): number {
    return Math.min(this.#upkeep.dueMs, this.#mark.dueMs);
  }

  /**
   * From now on snapshots are taken, and old ones purged: what is applied is committed. A server of its own allows it at
   * once, one of an ensemble when it serves; until then it may have txns applied that it has to truncate.
   */
  allowSnapshots(): void {
    assert(this.#database !== null && !this.#isRebuilding, 'a role begins after the recovery');
    this.#upkeep.allow();
  }

  /* ----------------------------------------------------------------------------------------------- history ---- */

  /** Bytes of the newest snapshot on the disk. */
  get newestSnapshotBytes(): number {
    return this.#upkeep.newest.bytes;
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
      new LogTruncation(
        this.#ports,
        this.#options,
        { zxid, mark: this.#mark },
        {
          onTruncated: () => {
            this.#history.clear();
            if (this.#isStopping || this.#hasFailed) this.#onRebuilt();
            else this.#recover(true, null);
          },
          onTruncateRefused: (reason) => {
            if (this.#onRebuilt()) this.#events.onTruncateRefused(reason);
          },
          onTruncateFailed: (error) => {
            this.#fail(
              new Error(`cannot cut the log behind 0x${formatZxid(zxid)}: ${error.message}`, { cause: error }),
            );
            this.#onRebuilt();
          },
        },
      ).start();
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
      this.#install = new SnapshotInstall(
        this.#ports,
        this.#options,
        { database, mark: this.#mark },
        (error, bytes) => {
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
          this.#durableZxid = onDisk(database.lastZxid);
          this.#upkeep.follow(database, { zxid: database.lastZxid, bytes });
          this.#upkeep.restartCount();
          if (this.#onRebuilt()) this.#events.onSnapshotInstalled(this.#durableZxid);
        },
      );
      this.#install.start();
    });
  }

  /** Closes the log, so that nobody but `work` touches the directory. */
  #rebuild(work: () => void): void {
    assert(this.#database !== null && !this.#isRebuilding, 'a history is exchanged after its recovery');
    assert(!this.#upkeep.isAllowed, 'a history is exchanged before the server serves');
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
    this.#log.follow(this.#durableZxid);
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
    this.#upkeep.abandon();
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
    const { zxid, bytes } = this.#upkeep.newest;
    const durableZxid = this.#durableZxid;
    return { database, durableZxid, snapshotZxid: zxid, snapshotBytes: bytes, logFiles: this.#logFiles };
  }

  #makeLog(): TxnLog {
    return new TxnLog(
      this.#ports,
      this.#options,
      {
        onSynced: (durable) => {
          this.#durableZxid = durable;
          if (this.#options.forceSync) this.#mark.raise(durable);
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
    this.#durableZxid = history.lastZxid;
    this.#upkeep.follow(database, { zxid: summary.snapshotZxid, bytes: summary.snapshotBytes });
    // A stop during the recovery has closed the log already.
    if (this.#isStopping || this.#hasFailed) {
      this.#isRebuilding = false;
      this.#maybeFinishStopping();
      return;
    }
    if (this.#isLogClosed) this.#onRebuilt();
    else this.#log.follow(summary.lastZxid);
    this.#isRebuilding = false;
    if (this.#options.ensemble === null) this.allowSnapshots();
    this.#events.onRecovered(database, summary, history);
  }

  #maybeFinishStopping(): void {
    const isIdle = this.#upkeep.isAtRest && !this.#epochs.isBusy;
    if (!this.#isStopping || this.#isMarkClosed || this.#isRebuilding || !this.#isLogClosed || !isIdle) return;
    this.#isMarkClosed = true;
    this.#mark.close(() => this.#finishStopping());
  }

  #finishStopping(): void {
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
    this.#upkeep.end();
    this.#events.onStorageFailed(error);
  }
}
