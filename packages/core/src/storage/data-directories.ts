/**
 * The one or two directories of a server, before anything in them is read: created, locked for this server, listed, and
 * cleaned of what a crash has left unfinished.
 *
 *     create ─► hold ─► list ─► sweep ─┬─────────────────────────► opened
 *                         ▲            └─► complete an install ─┐
 *                         └─────────────────────────────────────┘
 */
import type { CoreOptions } from '../base/options.ts';
import type { DirectoryEntry, DiskError, Ports } from '../base/ports.ts';
import type { DurableMark } from './durable-mark.ts';
import { installingZxid, logFilesOf, snapshotFilesOf } from './file-names.ts';
import { InstallCompletion } from './snapshot-install.ts';
import { looksWhole, removeUnfinished } from './snapshot-store.ts';

export interface DataDirectoriesEvents {
  onDirectoriesOpened(snapshotEntries: readonly DirectoryEntry[], logEntries: readonly DirectoryEntry[]): void;
  /** Directories that are locked already stay locked until `release`. */
  onDirectoriesRefused(error: Error): void;
}

export class DataDirectories {
  readonly #ports: Pick<Ports, 'disk' | 'clock' | 'trace'>;
  readonly #options: CoreOptions;
  readonly #context: { readonly isHeld: boolean; readonly mark: DurableMark };
  readonly #events: DataDirectoriesEvents;
  readonly #held: string[] = [];
  #snapshotEntries: readonly DirectoryEntry[] = [];
  #logEntries: readonly DirectoryEntry[] = [];

  /** @param context `isHeld`: this server has locked its directories already */
  constructor(
    ports: Pick<Ports, 'disk' | 'clock' | 'trace'>,
    options: CoreOptions,
    context: { readonly isHeld: boolean; readonly mark: DurableMark },
    events: DataDirectoriesEvents,
  ) {
    this.#ports = ports;
    this.#options = options;
    this.#context = context;
    this.#events = events;
  }

  open(): void {
    const { snapshotDirectory, logDirectory } = this.#options;
    const { disk } = this.#ports;
    disk.makeDirectory(snapshotDirectory, (error) => {
      if (error !== null) return this.#refuseFor('the data directory cannot be created', error);
      disk.makeDirectory(logDirectory, (logError) => {
        if (logError !== null) return this.#refuseFor('the log directory cannot be created', logError);
        this.#hold(snapshotDirectory, () => {
          if (logDirectory === snapshotDirectory) this.#list();
          else this.#hold(logDirectory, () => this.#list());
        });
      });
    });
  }

  #hold(directory: string, then: () => void): void {
    if (this.#context.isHeld) {
      this.#held.push(directory);
      then();
      return;
    }
    this.#ports.disk.hold(directory, (error) => {
      if (error !== null && error.code === 'EBUSY') {
        return this.#refuse(
          new Error(`${directory} is in use by another server; stop that one or give this one a directory of its own`, {
            cause: error,
          }),
        );
      }
      if (error !== null) return this.#refuseFor('the directory cannot be held for this server alone', error);
      this.#held.push(directory);
      then();
    });
  }

  #list(): void {
    const { disk } = this.#ports;
    const { snapshotDirectory, logDirectory } = this.#options;
    disk.list(snapshotDirectory, (error, entries) => {
      if (error !== null) return this.#refuseFor('the data directory cannot be read', error);
      this.#snapshotEntries = entries;
      disk.list(logDirectory, (logError, logEntries) => {
        if (logError !== null) return this.#refuseFor('the log directory cannot be read', logError);
        this.#logEntries = logEntries;
        this.#checkDirectories();
      });
    });
  }

  /** A misplaced file means that the two directories were one before, or the reverse. */
  #checkDirectories(): void {
    const { snapshotDirectory, logDirectory } = this.#options;
    if (logDirectory !== snapshotDirectory) {
      const snapshot = snapshotFilesOf(this.#logEntries)[0];
      const log = logFilesOf(this.#snapshotEntries)[0];
      const misplaced = snapshot
        ? { file: snapshot, directory: logDirectory, holds: 'logs', setting: 'dataLogDir' }
        : { file: log, directory: snapshotDirectory, holds: 'snapshots', setting: 'dataDir' };
      if (misplaced.file !== undefined) {
        this.#refuse(
          new Error(
            `${misplaced.directory} is for ${misplaced.holds} only but has ${misplaced.file.name}: were dataDir and ` +
              `dataLogDir one directory before? Move such files to the other directory or correct ${misplaced.setting}`,
          ),
        );
        return;
      }
    }
    removeUnfinished(this.#ports.disk, snapshotDirectory, this.#snapshotEntries, (error) => {
      if (error !== null) return this.#refuseFor('what is left of an unfinished snapshot cannot be removed', error);
      const installing = this.#snapshotEntries.find(({ name }) => installingZxid(name) !== null);
      if (installing === undefined) this.#events.onDirectoriesOpened(this.#snapshotEntries, this.#logEntries);
      else this.#completeInstall(installing);
    });
  }

  /** A crash interrupted the installation of a leader's snapshot, after the point of no return. */
  #completeInstall({ name, size }: DirectoryEntry): void {
    const { disk } = this.#ports;
    const { snapshotDirectory } = this.#options;
    const path = `${snapshotDirectory}/${name}`;
    looksWhole(disk, path, size, (error, isWhole) => {
      if (error !== null) return this.#refuseFor('the snapshot of the leader cannot be read', error);
      if (!isWhole) {
        return this.#refuse(
          new Error(
            `${path} is cut short: it was to replace all logs and snapshots, of which some may be gone. Copy the ` +
              'directory from a healthy server, or empty it and let this server rejoin its ensemble',
          ),
        );
      }
      new InstallCompletion(this.#ports, this.#options, this.#context.mark, (installError) => {
        if (installError !== null)
          return this.#refuseFor('the snapshot of the leader cannot be installed', installError);
        this.#list();
      }).start();
    });
  }

  /** Unlocks the directories. */
  release(): void {
    for (const directory of this.#held) this.#ports.disk.release(directory);
  }

  #refuseFor(attempted: string, cause: DiskError | Error): void {
    this.#refuse(new Error(`${attempted}: ${cause.message}`, { cause }));
  }

  #refuse(error: Error): void {
    this.#events.onDirectoriesRefused(error);
  }
}
