/**
 * Recovers a database from two directories: the newest snapshot that is whole, and every later txn of the log.
 *
 *     open the directories ─┬─► snapshot ─► log ─► epoch files, mark ─► recovered
 *                           └─ none, and no log: empty database, snapshot.0 ─┘
 *
 * Each arrow is a completion of the disk, in a separate event; snapshots and logs are read in slices. Recovery is
 * idempotent: txns that a fuzzy snapshot already contains may be applied again, because a txn states the new values of
 * a znode, not the difference (docs/storage.md, "Txns").
 *
 * In an ensemble the whole log is replayed, including txns that may never have been committed: the role in which the
 * server synchronizes decides about those. The history that it is given matches the database.
 *
 * Between two roles of one process the snapshot need not be loaded: the database of the last role contains the log up
 * to its last zxid, and the rest of the log is replayed as usual (ZKDatabase.fastForwardDataBase, ZOOKEEPER-2678).
 */
import { previousZxid, ZXID_NONE, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import { type Durable, onDisk, UNTRUSTED_HISTORY } from '../base/durable.ts';
import type { CoreOptions } from '../base/options.ts';
import type { DirectoryEntry, DiskError, Ports } from '../base/ports.ts';
import { Database } from '../tree/database.ts';
import type { History, HistoryEntry } from '../zab/history.ts';
import { DataDirectories } from './data-directories.ts';
import { DURABLE_MARK_NAME, type DurableMark, readDurableMark } from './durable-mark.ts';
import { EpochRecovery, type RecoveredEpochs } from './epoch-recovery.ts';
import { logFilesOf, snapshotFilesOf, type ZxidFile } from './file-names.ts';
import { HistoryTail, TAIL_BYTES_MAX } from './history-tail.ts';
import { describeLost } from './log-fault.ts';
import type { LogFiles } from './log-files.ts';
import { Replay } from './replay.ts';
import { type LoadedSnapshot, NewestSnapshot } from './snapshot-store.ts';
import { SnapshotWrite } from './snapshot-write.ts';
import { TxnLogReader } from './txn-log-reader.ts';
import type { TxnLogReaderOptions } from './txn-log-reader-host.ts';
import { type NewestSnapshotFile, NO_SNAPSHOT } from './upkeep.ts';

export interface RecoverySummary {
  readonly lastZxid: Zxid;
  /** The snapshot that was loaded, or written because the directory was empty. */
  readonly snapshot: NewestSnapshotFile;
  /** Txns replayed from the log. */
  readonly txns: number;
  /** True when there were no files: the database is empty. */
  readonly isNew: boolean;
}

export interface RecoveryEvents {
  onDatabaseRecovered(database: Database, summary: RecoverySummary, history: History): void;
  /** The directories are unchanged, and not locked by this server. */
  onRecoveryFailed(error: Error): void;
}

/**
 * The state that a gracefully stopped storage hands over to the next one of the same process. All of it is durable: the
 * log has every txn that the database has, so the database is equal to one that is read from the disk.
 */
export interface CarriedState {
  readonly database: Database;
  /** Last durable zxid of the log. */
  readonly durableZxid: Durable<Zxid>;
  readonly snapshot: NewestSnapshotFile;
}

export interface RecoveryContext {
  /** True when this server has locked its directories already. */
  readonly isHeld: boolean;
  /** Updated with the log files that are found; with a legacy it already knows them. */
  readonly logFiles: LogFiles;
  /** null: everything is read from the disk. */
  readonly carriedState: CarriedState | null;
  /** Set at the end to what was found to be durable. */
  readonly mark: DurableMark;
}

export class Recovery {
  readonly #ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'scans' | 'clock' | 'trace'>;
  /** Start times of loading the snapshot and of replaying the log. */
  #snapshotStartedMs = 0;
  #replayStartedMs = 0;
  readonly #options: CoreOptions;
  readonly #context: RecoveryContext;
  readonly #events: RecoveryEvents;
  readonly #directories: DataDirectories;
  readonly #tail: HistoryTail;
  #snapshotEntries: readonly DirectoryEntry[] = [];
  #logEntries: readonly DirectoryEntry[] = [];
  #txns = 0;
  /** See `TxnLogReaderOptions`. */
  #durable: Zxid | null = null;

  constructor(
    ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'scans' | 'clock' | 'trace'>,
    options: CoreOptions,
    context: RecoveryContext,
    events: RecoveryEvents,
  ) {
    this.#ports = ports;
    this.#options = options;
    this.#context = context;
    this.#events = events;
    this.#tail = new HistoryTail(options.ensemble?.commitLogCount ?? 0);
    this.#directories = new DataDirectories(ports, options, context, {
      onDirectoriesOpened: (snapshotEntries, logEntries) => {
        this.#snapshotEntries = snapshotEntries;
        this.#logEntries = logEntries;
        this.#readMark();
      },
      onDirectoriesRefused: (error) => this.#fail(error),
    });
  }

  start(): void {
    this.#directories.open();
  }

  /** Reads what the log must contain. */
  #readMark(): void {
    const { disk, trace } = this.#ports;
    const { snapshotDirectory } = this.#options;
    if (this.#context.carriedState !== null) {
      this.#continue(this.#context.carriedState);
      return;
    }
    readDurableMark(disk, snapshotDirectory, (durable, fault) => {
      const message = `${fault}: whether the log reaches as far as this server has acknowledged is not checked`;
      if (fault !== null) trace.emit({ kind: 'warning', message });
      this.#durable = durable;
      this.#loadSnapshot();
    });
  }

  #loadSnapshot(): void {
    this.#snapshotStartedMs = this.#ports.clock.monotonicMs();
    this.#replayStartedMs = this.#snapshotStartedMs;
    const logs = logFilesOf(this.#logEntries);
    this.#context.logFiles.reset(logs);
    // A crash of Apache during its first start leaves part of a snapshot.0 and no log: nothing was acknowledged.
    const isFirstMoment = logs.length === 0 && snapshotFilesOf(this.#snapshotEntries).every((file) => file.zxid === 0);
    const { snapshotDirectory } = this.#options;
    new NewestSnapshot(this.#ports, snapshotDirectory, this.#snapshotEntries, () => this.#makeDatabase(), {
      onSnapshotLoaded: (snapshot) => this.#replay(logs, snapshot),
      onNoSnapshot: () => this.#startWithoutSnapshot(logs),
      onSnapshotsUnusable: (error) => {
        if (isFirstMoment) this.#startEmpty();
        else this.#fail(error);
      },
    }).load();
  }

  #makeDatabase(): Database {
    return new Database(this.#options, this.#ports.trace);
  }

  #startWithoutSnapshot(logs: readonly ZxidFile[]): void {
    const { logDirectory, snapshotDirectory, trustEmptySnapshot } = this.#options;
    if (logs.length === 0) {
      if (this.#durable !== null && this.#durable > 0)
        this.#fail(new Error(describeLost(logDirectory, ZXID_ZERO, this.#durable)));
      else this.#startEmpty();
      return;
    }
    if (!trustEmptySnapshot) {
      this.#fail(
        new Error(
          `${logDirectory} has ${logs.length} log files but ${snapshotDirectory} has no snapshot: the state that the log ` +
            'continues is missing. Restore the snapshot, or, when the log reaches back to the first txn (as after an upgrade ' +
            'from before 3.5.3), start once with snapshot.trust.empty=true',
        ),
      );
      return;
    }
    this.#ports.trace.emit({
      kind: 'warning',
      message: `${snapshotDirectory} has no snapshot; snapshot.trust.empty makes this server replay the log from scratch`,
    });
    this.#replay(logs, {
      database: this.#makeDatabase(),
      zxid: ZXID_NONE,
      digest: null,
      completeZxid: null,
      compression: null,
      bytes: 0,
    });
  }

  /** No files at all: a new server, or one that has lost its disk. */
  #startEmpty(): void {
    const { createsDatabase, ensemble, snapshotDirectory } = this.#options;
    if (createsDatabase) {
      this.#createDatabase();
      return;
    }
    this.#ports.disk.open(this.#initializePath, { readOnly: true }, (error, file) => {
      if (error === null) {
        file.close();
        this.#createDatabase();
        return;
      }
      if (error.code !== 'ENOENT') return this.#failOn(`${this.#initializePath} cannot be read`, error);
      const found = `${snapshotDirectory} is empty and db.autocreate is false`;
      const remedy = `if this is the first start of a new service, create the file ${this.#initializePath}`;
      if (ensemble === null) return this.#fail(new Error(`${found}: restore the data from a backup, or, ${remedy}`));
      const consequence = 'this server does not vote until a leader has sent it everything';
      this.#ports.trace.emit({ kind: 'warning', message: `${found}: ${consequence}; ${remedy}, and start again` });
      this.#settleEpochs(this.#makeDatabase(), { snapshot: NO_SNAPSHOT, isNew: true });
    });
  }

  /** An empty database, and its snapshot, without which an Apache server does not open a directory. */
  #createDatabase(): void {
    const database = this.#makeDatabase();
    new SnapshotWrite(this.#ports, { ...this.#options, isIndispensable: true }, database, {
      onSnapshotWritten: (zxid, bytes) => {
        const snapshot = { zxid, compression: this.#options.snapshotCompression, bytes };
        this.#settleEpochs(database, { snapshot, isNew: true });
      },
      onSnapshotFailed: (error) => this.#failOn('the first snapshot cannot be written', error),
    }).start();
  }

  #replay(logs: readonly ZxidFile[], { database, zxid, digest, compression, bytes }: LoadedSnapshot): void {
    this.#replayStartedMs = this.#ports.clock.monotonicMs();
    // The newest file whose name is not above the snapshot contains the first later txn, or one before that.
    const first = logs.findLastIndex((file) => file.zxid <= zxid);
    const replay = new Replay(database, this.#options.digestEnabled ? digest : null, this.#ports.trace);
    this.#readLog(
      {
        files: logs.slice(Math.max(first, 0)),
        durable: this.#durable,
        after: zxid,
        startAt: 0,
        areSizesExact: false,
        rewritesEnd: !this.#context.isHeld,
      },
      replay,
      zxid,
      () => this.#settleEpochs(database, { snapshot: { zxid, compression, bytes }, isNew: false }),
    );
  }

  /** Replays the part of the log that the database lacks, and reads as much before that as is kept for learners. */
  #continue({ database, durableZxid, snapshot }: CarriedState): void {
    const { logFiles } = this.#context;
    const { lastZxid } = database;
    const place = logFiles.placeBefore(lastZxid, this.#tail.countMax, TAIL_BYTES_MAX);
    const { files } = logFiles;
    this.#readLog(
      {
        files: place === null ? files.filter((file) => file.zxid > lastZxid) : files.slice(files.indexOf(place.file)),
        durable: durableZxid,
        after: place === null ? lastZxid : previousZxid(place.zxid),
        startAt: place?.position ?? 0,
        areSizesExact: true,
        rewritesEnd: false,
      },
      new Replay(database, null, this.#ports.trace),
      lastZxid,
      (lastRead) => {
        assert(lastRead >= lastZxid, 'the log has what was applied from it');
        this.#settleEpochs(database, { snapshot, isNew: false });
      },
    );
  }

  /** @param applied the database has everything up to here: such entries are only kept for learners */
  #readLog(
    range: Omit<TxnLogReaderOptions, 'logDirectory' | 'snapshotDirectory' | 'forceSync' | 'isEnsemble'>,
    replay: Replay,
    applied: Zxid,
    onRead: (lastZxid: Zxid) => void,
  ): void {
    const { disk, scans = null, trace } = this.#ports;
    const { logDirectory, snapshotDirectory, forceSync, ensemble } = this.#options;
    const { logFiles } = this.#context;
    const reader: TxnLogReader = new TxnLogReader(
      { disk, scans, trace },
      { ...range, logDirectory, snapshotDirectory, forceSync, isEnsemble: ensemble !== null },
      {
        onTxn: (payload, known) => {
          const zxid = reader.entryZxid;
          if (ensemble !== null) {
            this.#tail.add(zxid, payload);
            logFiles.onEntryRead(reader.entryFile.name, zxid, reader.entryPosition);
          }
          return zxid <= applied || replay.apply(payload, known);
        },
        onEntriesAhead: (bytes, starts, count) => replay.onAhead(bytes, starts, count),
        onMemory: (memory) => replay.onMemory(memory),
        onScannedAhead: (rows, row, rowsEnd) => replay.onScannedAhead(rows, row, rowsEnd),
        onLogFileRead: (file, size) => {
          // A file without a header is removed.
          if (size === 0) logFiles.forget([file.name]);
          else logFiles.onRead(file.name, size);
        },
        onLogRead: () => {
          this.#txns = replay.txns;
          onRead(reader.entryZxid);
        },
        onLogFault: (error) => this.#fail(error),
      },
    );
    reader.start();
  }

  #settleEpochs(database: Database, from: RecoveryBase): void {
    const { snapshotDirectory, ensemble } = this.#options;
    const where = { directory: snapshotDirectory, isEnsemble: ensemble !== null };
    new EpochRecovery(this.#ports.disk, where, {
      onEpochsRecovered: (epochs) => {
        this.#makeNamesDurable(() => {
          this.#settleMark(database.lastZxid, epochs.acceptedEpoch, () => {
            this.#removeInitialize(() => this.#finish(database, from, epochs));
          });
        });
      },
      onEpochsRefused: (error) => this.#fail(error),
    }).start(database.lastZxid);
  }

  /**
   * A process that was killed may have left new names of epoch files and snapshots unsynced. This server would make a
   * promise from such an epoch; and a snapshot whose installation a power cut made unfinished again would replace logs
   * that were written after it.
   */
  #makeNamesDurable(then: () => void): void {
    this.#ports.disk.syncDirectory(this.#options.snapshotDirectory, (error) => {
      if (error === null) then();
      else this.#failOn('the data directory cannot be made durable', error);
    });
  }

  /** The file is for the first start only: a server that loses its disk later must not find it. */
  #removeInitialize(then: () => void): void {
    if (this.#options.createsDatabase) {
      then();
      return;
    }
    const { disk, trace } = this.#ports;
    const path = this.#initializePath;
    const onRemoved = (error: DiskError | null): void => {
      const remedy = 'Remove it: with it, a lost disk is mistaken for that of a new server';
      if (error !== null)
        trace.emit({ kind: 'warning', message: `${path} cannot be removed: ${error.message}. ${remedy}` });
      then();
    };
    disk.remove(path, (error) => {
      if (error?.code === 'ENOENT') then();
      else if (error !== null) onRemoved(error);
      else disk.syncDirectory(directoryOf(path), onRemoved);
    });
  }

  get #initializePath(): string {
    return `${directoryOf(this.#options.logDirectory)}/initialize`;
  }

  /** Everything that was found is durable. Without forceSync nothing is guaranteed. */
  #settleMark(lastZxid: Zxid, acceptedEpoch: number, then: () => void): void {
    const zxid = this.#options.forceSync ? lastZxid : ZXID_ZERO;
    this.#context.mark.settle({ zxid, acceptedEpoch }, (error) => {
      const message = `${DURABLE_MARK_NAME} is not written until the next start: ${error?.message}`;
      if (error !== null) this.#ports.trace.emit({ kind: 'warning', message });
      then();
    });
  }

  #finish(database: Database, from: RecoveryBase, epochs: RecoveredEpochs): void {
    this.#ports.scans?.stop();
    const { lastZxid } = database;
    this.#ports.trace.emit({
      kind: 'recovered',
      lastZxid,
      znodes: database.tree.count,
      sessions: database.sessions.size,
      txns: this.#txns,
      snapshotMs: this.#replayStartedMs - this.#snapshotStartedMs,
      replayMs: this.#ports.clock.monotonicMs() - this.#replayStartedMs,
    });
    const tail: readonly HistoryEntry[] = this.#tail.entries();
    const isUntrusted = !this.#options.createsDatabase && from.snapshot.zxid === ZXID_NONE && lastZxid === ZXID_ZERO;
    this.#events.onDatabaseRecovered(
      database,
      { lastZxid, snapshot: from.snapshot, txns: this.#txns, isNew: from.isNew },
      {
        lastZxid: isUntrusted ? UNTRUSTED_HISTORY : onDisk(lastZxid),
        acceptedEpoch: onDisk(epochs.acceptedEpoch),
        currentEpoch: onDisk(epochs.currentEpoch),
        tail,
      },
    );
  }

  #failOn(attempted: string, cause: DiskError | Error): void {
    this.#fail(new Error(`${attempted}: ${cause.message}`, { cause }));
  }

  #fail(error: Error): void {
    this.#ports.scans?.stop();
    this.#directories.release();
    this.#events.onRecoveryFailed(error);
  }
}

function directoryOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

/** The snapshot that the replay started from. */
interface RecoveryBase {
  readonly snapshot: NewestSnapshotFile;
  readonly isNew: boolean;
}
