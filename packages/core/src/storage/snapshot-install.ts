/**
 * A leader's snapshot becomes the whole history of a learner, all at once.
 *
 *     unfinished-snapshot.<zxid>, synced ─► installing-snapshot.<zxid> ─► sync of the directory
 *                                                   │ from here on a start goes on with this
 *          all logs removed ◄───────────────────────┘
 *                  └─► sync ─► all other snapshots removed ─► sync ─► snapshot.<zxid> ─► sync ─► told
 *
 * 1. Before the second name there is the old history, as before; what is unfinished is removed at the next start.
 * 2. From then on there is the new one: whoever finds the name repeats the rest, from the beginning.
 * 3. Nothing old stays: between an older snapshot and the log that will begin here txns are missing, and what a longer
 *    log has behind `zxid` was never committed.
 */
import { assert } from '../assert.ts';
import type { DirectoryEntry, Disk, DiskDone, DiskError, Ports } from '../ports.ts';
import type { Database } from '../tree/database.ts';
import { installingZxid, logFilesOf, snapshotFilesOf, snapshotName, type ZxidFile } from './file-names.ts';
import { SnapshotWrite } from './snapshot-write.ts';

export interface SnapshotInstallOptions {
  readonly snapshotDirectory: string;
  readonly logDirectory: string;
}

export class SnapshotInstall {
  readonly #ports: Pick<Ports, 'disk' | 'clock' | 'trace'>;
  readonly #options: SnapshotInstallOptions;
  readonly #write: SnapshotWrite;
  readonly #done: (error: Error | null, bytes: number) => void;

  /**
   * @param database nobody applies anything to it until this is done
   * @param done told once, with a later event: the bytes of the snapshot; after an error the old history or the new one
   *   is there at the next start
   */
  constructor(
    ports: Pick<Ports, 'disk' | 'clock' | 'trace'>,
    options: SnapshotInstallOptions,
    database: Database,
    done: (error: Error | null, bytes: number) => void,
  ) {
    this.#ports = ports;
    this.#options = options;
    this.#done = done;
    // The leader went on while it sent the tree: what is here may be ahead of the zxid, and digests would differ until the
    // txns behind it have been replayed.
    this.#write = new SnapshotWrite(ports, { ...options, digestEnabled: false, isToBeInstalled: true }, database, {
      onSnapshotWritten: (_zxid, bytes) => this.#replace(bytes),
      onSnapshotFailed: (error) => done(error, 0),
    });
  }

  start(): void {
    this.#write.start();
  }

  /** Gives up, unless the new history is there already; `done` follows in either case. */
  abandon(): void {
    this.#write.abandon();
  }

  #replace(bytes: number): void {
    new InstallCompletion(this.#ports.disk, this.#options, (error) => this.#done(error, bytes)).start();
  }
}

/** Goes on with an installation whose snapshot has its second name, from wherever it was left. */
export class InstallCompletion {
  readonly #disk: Disk;
  readonly #snapshotDirectory: string;
  readonly #logDirectory: string;
  readonly #done: (error: DiskError | null) => void;

  /** @param done told once, with a later event */
  constructor(
    disk: Disk,
    directories: Pick<SnapshotInstallOptions, 'snapshotDirectory' | 'logDirectory'>,
    done: (error: DiskError | null) => void,
  ) {
    this.#disk = disk;
    this.#snapshotDirectory = directories.snapshotDirectory;
    this.#logDirectory = directories.logDirectory;
    this.#done = done;
  }

  start(): void {
    const disk = this.#disk;
    // The name may be in the kernel's memory only, and what is removed now must not be gone without it.
    disk.syncDirectory(this.#snapshotDirectory, (syncError) => {
      if (syncError !== null) return this.#done(syncError);
      disk.list(this.#snapshotDirectory, (error, snapshotEntries) => {
        if (error !== null) return this.#done(error);
        disk.list(this.#logDirectory, (logError, logEntries) => {
          if (logError !== null) return this.#done(logError);
          this.#replace(snapshotEntries, logEntries);
        });
      });
    });
  }

  #replace(snapshotEntries: readonly DirectoryEntry[], logEntries: readonly DirectoryEntry[]): void {
    const disk = this.#disk;
    const directory = this.#snapshotDirectory;
    const installing = snapshotEntries.find(({ name }) => installingZxid(name) !== null);
    assert(installing !== undefined, 'the snapshot has the name under which it is installed');
    const zxid = installingZxid(installing.name);
    assert(zxid !== null, 'its name says its zxid');
    const steps: ((done: DiskDone) => void)[] = [
      ...removals(disk, this.#logDirectory, logFilesOf(logEntries)),
      (done) => disk.syncDirectory(this.#logDirectory, done),
      ...removals(disk, directory, snapshotFilesOf(snapshotEntries)),
      (done) => disk.syncDirectory(directory, done),
      (done) => disk.rename(`${directory}/${installing.name}`, `${directory}/${snapshotName(zxid)}`, done),
      (done) => disk.syncDirectory(directory, done),
    ];
    const next = (error: DiskError | null): void => {
      const step = error === null ? steps.shift() : undefined;
      if (step === undefined) this.#done(error);
      else step(next);
    };
    next(null);
  }
}

/** Removes files, newest first. */
function removals(disk: Disk, directory: string, files: readonly ZxidFile[]): ((done: DiskDone) => void)[] {
  return files.toReversed().map(
    ({ name }) =>
      (done) =>
        disk.remove(`${directory}/${name}`, done),
  );
}
