/**
 * From two directories to a database: the newest snapshot that is whole, and every txn of the log behind it.
 *
 *     create the directories ─► hold them ─► list ─► sweep ─► snapshot ─► log ─► epoch files ─► recovered
 *                                                               └─ none, and no log: empty database, snapshot.0 ─┘
 *
 * Each arrow is a completion of the disk, an event of its own; snapshots and logs are read in slices. Recovering twice
 * gives the same database: txns say what becomes of a znode, not what changes (DESIGN §5), and what a fuzzy snapshot has
 * already may be applied again.
 */
import { epochOf, ZXID_NONE, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import type { CoreOptions } from '../options.ts';
import type { DirectoryEntry, DiskError, Ports } from '../ports.ts';
import { Database } from '../tree/database.ts';
import { EpochFiles } from './epoch-files.ts';
import { logFilesOf, snapshotFilesOf, type ZxidFile } from './file-names.ts';
import { Replay } from './replay.ts';
import { type LoadedSnapshot, NewestSnapshot, removeUnfinished } from './snapshot-store.ts';
import { SnapshotWrite } from './snapshot-write.ts';
import { TxnLogReader } from './txn-log-reader.ts';

export interface RecoverySummary {
  readonly lastZxid: Zxid;
  /** Zxid of the snapshot that was loaded, or written because the directory was empty. */
  readonly snapshotZxid: Zxid;
  /** Txns replayed from the log. */
  readonly txns: number;
  /** True when there was nothing: the database is empty. */
  readonly isNew: boolean;
}

export interface RecoveryEvents {
  onDatabaseRecovered(database: Database, summary: RecoverySummary): void;
  /** The directories are as they were, and nothing holds them. */
  onRecoveryFailed(error: Error): void;
}

export class Recovery {
  readonly #ports: Pick<Ports, 'disk' | 'clock' | 'trace'>;
  readonly #options: CoreOptions;
  readonly #events: RecoveryEvents;
  readonly #held: string[] = [];
  #snapshotEntries: readonly DirectoryEntry[] = [];
  #logEntries: readonly DirectoryEntry[] = [];
  #txns = 0;

  constructor(ports: Pick<Ports, 'disk' | 'clock' | 'trace'>, options: CoreOptions, events: RecoveryEvents) {
    this.#ports = ports;
    this.#options = options;
    this.#events = events;
  }

  start(): void {
    const { snapshotDirectory, logDirectory } = this.#options;
    const { disk } = this.#ports;
    disk.makeDirectory(snapshotDirectory, (error) => {
      if (error !== null) return this.#failOn('the data directory cannot be created', error);
      disk.makeDirectory(logDirectory, (logError) => {
        if (logError !== null) return this.#failOn('the log directory cannot be created', logError);
        this.#hold(snapshotDirectory, () => {
          if (logDirectory === snapshotDirectory) this.#list();
          else this.#hold(logDirectory, () => this.#list());
        });
      });
    });
  }

  #hold(directory: string, then: () => void): void {
    this.#ports.disk.hold(directory, (error) => {
      if (error !== null && error.code === 'EBUSY') {
        return this.#fail(
          new Error(`${directory} is in use by another server; stop that one or give this one a directory of its own`, {
            cause: error,
          }),
        );
      }
      if (error !== null) return this.#failOn('the directory cannot be held for this server alone', error);
      this.#held.push(directory);
      then();
    });
  }

  #list(): void {
    const { disk } = this.#ports;
    const { snapshotDirectory, logDirectory } = this.#options;
    disk.list(snapshotDirectory, (error, entries) => {
      if (error !== null) return this.#failOn('the data directory cannot be read', error);
      this.#snapshotEntries = entries;
      disk.list(logDirectory, (logError, logEntries) => {
        if (logError !== null) return this.#failOn('the log directory cannot be read', logError);
        this.#logEntries = logEntries;
        this.#checkDirectories();
      });
    });
  }

  /** With two directories, a file in the wrong one means that they were one, or the other way round, before. */
  #checkDirectories(): void {
    const { snapshotDirectory, logDirectory } = this.#options;
    if (logDirectory !== snapshotDirectory) {
      const snapshot = snapshotFilesOf(this.#logEntries)[0];
      const log = logFilesOf(this.#snapshotEntries)[0];
      const misplaced = snapshot
        ? { file: snapshot, directory: logDirectory, holds: 'logs', setting: 'dataLogDir' }
        : { file: log, directory: snapshotDirectory, holds: 'snapshots', setting: 'dataDir' };
      if (misplaced.file !== undefined) {
        this.#fail(
          new Error(
            `${misplaced.directory} is for ${misplaced.holds} only but has ${misplaced.file.name}: were dataDir and ` +
              `dataLogDir one directory before? Move such files to the other directory or correct ${misplaced.setting}`,
          ),
        );
        return;
      }
    }
    removeUnfinished(this.#ports.disk, snapshotDirectory, this.#snapshotEntries, (error) => {
      if (error !== null) return this.#failOn('what is left of an unfinished snapshot cannot be removed', error);
      this.#loadSnapshot();
    });
  }

  #loadSnapshot(): void {
    const logs = logFilesOf(this.#logEntries);
    // A crash of Apache's in its first moments leaves part of a snapshot.0 and no log: nothing was acknowledged.
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
      this.#startEmpty();
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
      message: `${snapshotDirectory} has no snapshot; snapshot.trust.empty makes this server replay the log over nothing`,
    });
    this.#replay(logs, { database: this.#makeDatabase(), zxid: ZXID_NONE, digest: null });
  }

  /** Nothing at all: an empty database, and the snapshot of it without which Apache's server opens no directory. */
  #startEmpty(): void {
    const database = this.#makeDatabase();
    new SnapshotWrite(this.#ports, this.#options, database, {
      onSnapshotWritten: () => this.#settleEpochs(database, { zxid: ZXID_ZERO, isNew: true }),
      onSnapshotFailed: (error) => this.#failOn('the first snapshot cannot be written', error),
    }).start();
  }

  #replay(logs: readonly ZxidFile[], { database, zxid, digest }: LoadedSnapshot): void {
    const { disk, trace } = this.#ports;
    const { logDirectory, digestEnabled } = this.#options;
    const replay = new Replay(database, digestEnabled ? digest : null, trace);
    // The newest file whose name is not above the snapshot holds the first txn behind it, or one before that.
    const first = logs.findLastIndex((file) => file.zxid <= zxid);
    const reader = new TxnLogReader(
      { disk, trace },
      { logDirectory, files: logs.slice(Math.max(first, 0)), after: zxid },
      {
        onTxn: (payload) => replay.apply(payload),
        onLogRead: () => {
          this.#txns = replay.txns;
          this.#settleEpochs(database, { zxid, isNew: false });
        },
        onLogFault: (error) => this.#fail(error),
      },
    );
    reader.start();
  }

  /**
   * A lone Apache server has no epoch files; written here, they say what an ensemble's server would conclude from the
   * last zxid, and let it open the directory also when this server has gone on to a later epoch.
   */
  #settleEpochs(database: Database, from: { readonly zxid: Zxid; readonly isNew: boolean }): void {
    const files = new EpochFiles(this.#ports.disk, this.#options.snapshotDirectory);
    const epoch = Math.max(0, epochOf(database.lastZxid));
    const settle = (name: 'acceptedEpoch' | 'currentEpoch', then: () => void): void => {
      files.read(name, (error, found) => {
        if (error !== null) return this.#failOn(`${name} cannot be read`, error);
        if (found !== null && found >= epoch) return then();
        files.write(name, epoch, (writeError) => {
          if (writeError !== null) return this.#failOn(`${name} cannot be written`, writeError);
          then();
        });
      });
    };
    // Accepted first, so that it is never behind.
    settle('acceptedEpoch', () => settle('currentEpoch', () => this.#finish(database, from)));
  }

  #finish(database: Database, from: { readonly zxid: Zxid; readonly isNew: boolean }): void {
    const { lastZxid } = database;
    this.#ports.trace.emit({
      kind: 'recovered',
      lastZxid,
      znodes: database.tree.count,
      sessions: database.sessions.size,
      txns: this.#txns,
    });
    const summary = { lastZxid, snapshotZxid: from.zxid, txns: this.#txns, isNew: from.isNew };
    this.#events.onDatabaseRecovered(database, summary);
  }

  #failOn(attempted: string, cause: DiskError | Error): void {
    this.#fail(new Error(`${attempted}: ${cause.message}`, { cause }));
  }

  #fail(error: Error): void {
    for (const directory of this.#held) this.#ports.disk.release(directory);
    this.#events.onRecoveryFailed(error);
  }
}
