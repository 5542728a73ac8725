/**
 * A leader's snapshot replaces the whole history of a learner, atomically.
 *
 *     unfinished-snapshot.<zxid>, synced ─► installing-snapshot.<zxid> ─► sync of the directory
 *                                                   │ from here on a start continues with this
 *          all logs set aside ◄─────────────────────┘
 *                  └─► sync ─► all other snapshots set aside ─► sync ─► snapshot.<zxid> ─► sync ─► done
 *
 * 1. Before the second name exists, the old history is in place; unfinished files are removed at the next start.
 * 2. From then on the new history is in place: a start that finds the name repeats the remaining steps, from the first
 *    one.
 * 3. Nothing old stays in the history: between an older snapshot and the log that will begin here txns are missing, and
 *    what a longer log has after `zxid` was never committed. It is kept under other names (`replaced-files.ts`).
 */

import { ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { DirectoryEntry, DiskDone, DiskError, Ports } from '../base/ports.ts';
import type { Database } from '../tree/database.ts';
import type { DurableMark } from './durable-mark.ts';
import {
  compressionOf,
  installingZxid,
  logFilesOf,
  snapshotFilesOf,
  snapshotName,
  type ZxidFile,
} from './file-names.ts';
import { ReplacedSet, type StorageDirectories } from './replaced-files.ts';
import { SnapshotWrite, type SnapshotWriteOptions } from './snapshot-write.ts';

type InstallOptions = StorageDirectories & Pick<SnapshotWriteOptions, 'snapshotCompression'>;

export class SnapshotInstall {
  readonly #ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'clock' | 'trace'>;
  readonly #options: InstallOptions;
  readonly #write: SnapshotWrite;
  readonly #mark: DurableMark;
  readonly #done: (error: Error | null, bytes: number) => void;

  /**
   * @param database must not change until this is done
   * @param done called once, in a later event: the size of the snapshot in bytes; after an error the next start finds
   *   the old history or the new one
   */
  constructor(
    ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'clock' | 'trace'>,
    options: InstallOptions,
    { database, mark }: { readonly database: Database; readonly mark: DurableMark },
    done: (error: Error | null, bytes: number) => void,
  ) {
    this.#ports = ports;
    this.#options = options;
    this.#mark = mark;
    this.#done = done;
    // The leader's state changed while it sent the tree: this tree may be ahead of the zxid, and digests would differ
    // until later txns have been replayed.
    const kind = { digestEnabled: false, isToBeInstalled: true, isIndispensable: true };
    this.#write = new SnapshotWrite(ports, { ...options, ...kind }, database, {
      onSnapshotWritten: (_zxid, bytes) => this.#replace(bytes),
      onSnapshotFailed: (error) => done(error, 0),
    });
  }

  start(): void {
    this.#write.start();
  }

  /** Aborts, unless the new history is already in place; `done` follows in either case. */
  abandon(): void {
    this.#write.abandon();
  }

  #replace(bytes: number): void {
    new InstallCompletion(this.#ports, this.#options, this.#mark, (error) => this.#done(error, bytes)).start();
  }
}

/** Completes an installation whose snapshot has its second name, from whatever step it had reached. */
export class InstallCompletion {
  readonly #ports: Pick<Ports, 'disk' | 'trace'>;
  readonly #directories: StorageDirectories;
  readonly #mark: DurableMark;
  readonly #done: (error: DiskError | null) => void;

  /** @param done called once, in a later event */
  constructor(
    ports: Pick<Ports, 'disk' | 'trace'>,
    directories: StorageDirectories,
    mark: DurableMark,
    done: (error: DiskError | null) => void,
  ) {
    this.#ports = ports;
    this.#directories = directories;
    this.#mark = mark;
    this.#done = done;
  }

  start(): void {
    const { disk } = this.#ports;
    const { snapshotDirectory, logDirectory } = this.#directories;
    // The name may be unsynced, and the files that are set aside now must not disappear without it.
    disk.syncDirectory(snapshotDirectory, (syncError) => {
      if (syncError !== null) return this.#done(syncError);
      disk.list(snapshotDirectory, (error, snapshotEntries) => {
        if (error !== null) return this.#done(error);
        disk.list(logDirectory, (logError, logEntries) => {
          if (logError !== null) return this.#done(logError);
          this.#beginSet(snapshotEntries, logEntries);
        });
      });
    });
  }

  #beginSet(snapshotEntries: readonly DirectoryEntry[], logEntries: readonly DirectoryEntry[]): void {
    const installing = snapshotEntries.find(({ name }) => installingZxid(name) !== null);
    assert(installing !== undefined, 'the snapshot has the name under which it is installed');
    const zxid = installingZxid(installing.name);
    assert(zxid !== null, 'its name contains its zxid');
    // The mark must not cover what is about to be removed.
    this.#mark.lower(ZXID_ZERO, (markError) => {
      if (markError !== null) return this.#done(markError);
      ReplacedSet.begin(this.#ports.disk, this.#directories, zxid, (error, set) => {
        if (set === null) return this.#done(error);
        this.#replace(set, snapshotFilesOf(snapshotEntries), logFilesOf(logEntries), installing.name, zxid);
      });
    });
  }

  #replace(
    set: ReplacedSet,
    snapshots: readonly ZxidFile[],
    logs: readonly ZxidFile[],
    installing: string,
    zxid: Zxid,
  ): void {
    const { disk, trace } = this.#ports;
    const { snapshotDirectory, logDirectory } = this.#directories;
    const name = snapshotName(zxid, compressionOf(installing));
    const steps: ((done: DiskDone) => void)[] = [
      ...setAside(set, logDirectory, logs),
      (done) => disk.syncDirectory(logDirectory, done),
      ...setAside(set, snapshotDirectory, snapshots),
      (done) => disk.syncDirectory(snapshotDirectory, done),
      (done) => disk.rename(`${snapshotDirectory}/${installing}`, `${snapshotDirectory}/${name}`, done),
      (done) => disk.syncDirectory(snapshotDirectory, done),
    ];
    const next = (error: DiskError | null): void => {
      const step = error === null ? steps.shift() : undefined;
      if (step !== undefined) {
        step(next);
        return;
      }
      if (error === null && logs.length + snapshots.length > 0) {
        const kept = `${set.prefix}… (${logs.length} logs, ${snapshots.length} snapshots)`;
        const message = `an installed snapshot is the history now; what it replaces is kept as ${kept}`;
        trace.emit({ kind: 'recovery-progress', message });
      }
      this.#done(error);
    };
    next(null);
  }
}

/** Newest first. */
function setAside(set: ReplacedSet, directory: string, files: readonly ZxidFile[]): ((done: DiskDone) => void)[] {
  return files.toReversed().map(
    ({ name }) =>
      (done) =>
        set.move(directory, name, done),
  );
}
