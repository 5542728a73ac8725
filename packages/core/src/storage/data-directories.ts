/**
 * The two directories of a server, or the one, before anything in them is read: made, held for this server alone, listed,
 * and cleared of what a crash has left unfinished.
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
  /** Those that are held already stay held until `release`. */
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

  /** @param context `isHeld`: this server holds its directories already */
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

  /** A crash has cut the installation of a leader's snapshot short, behind the point of no return. */
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
              'directory from a healthy server, or empty it and let this server join its ensemble anew',
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

  /** Lets others have what this server holds. */
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
