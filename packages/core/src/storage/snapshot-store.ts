/**
 * The snapshots of a directory, and the newest one that can be loaded.
 *
 * Up to 100 snapshots that pass the quick test are tried, newest first; a damaged one is reported and the next older
 * one is tried: either the log reaches back far enough for it, or the start is refused (`txn-log-reader.ts`). If there
 * are snapshots but none can be loaded, the start is refused; they are never treated as an empty directory.
 */
import { hexZxid, type Zxid } from '@meerkat/protocol';
import type { Compression, DirectoryEntry, Disk, DiskDone, DiskError, Ports } from '../base/ports.ts';
import type { Database } from '../tree/database.ts';
import { compressionOf, isUnfinishedSnapshot, snapshotFilesOf, type ZxidFile } from './file-names.ts';
import type { SnapshotDigest } from './snapshot-end.ts';
import {
  beginsLikeCompressed,
  COMPRESSED_HEAD_BYTES,
  endsLikeSnapshot,
  isLongEnoughForSnapshot,
  SEAL_END_BYTES,
} from './snapshot-format.ts';
import { SnapshotLoad } from './snapshot-load.ts';

export interface LoadedSnapshot {
  readonly database: Database;
  readonly zxid: Zxid;
  readonly compression: Compression | null;
  readonly digest: SnapshotDigest | null;
  /** See `SnapshotLoaded`. */
  readonly completeZxid: number | null;
  /** Size of the snapshot, decompressed; 0 without one. */
  readonly bytes: number;
}

/** Exactly one of the three is called, once, in a later event. */
export interface SnapshotStoreEvents {
  onSnapshotLoaded(snapshot: LoadedSnapshot): void;
  onNoSnapshot(): void;
  /** There are snapshots, but none can be loaded. */
  onSnapshotsUnusable(error: Error): void;
}

const CANDIDATES_MAX = 100;

/** Loads the newest snapshot that is whole. `makeDatabase` returns an empty database for each attempt. */
export class NewestSnapshot {
  readonly #ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'scans' | 'trace'>;
  readonly #directory: string;
  readonly #makeDatabase: () => Database;
  readonly #events: SnapshotStoreEvents;
  /** Newest last. */
  readonly #candidates: ZxidFile[];
  readonly #names: string;
  #tried = 0;
  /** Why the newest one cannot be loaded. */
  #firstFault = '';

  constructor(
    ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'scans' | 'trace'>,
    directory: string,
    entries: readonly DirectoryEntry[],
    makeDatabase: () => Database,
    events: SnapshotStoreEvents,
  ) {
    this.#ports = ports;
    this.#directory = directory;
    this.#makeDatabase = makeDatabase;
    this.#events = events;
    this.#candidates = snapshotFilesOf(entries);
    this.#names = this.#candidates.map((file) => file.name).join(', ');
  }

  load(): void {
    if (this.#candidates.length === 0) {
      this.#events.onNoSnapshot();
      return;
    }
    this.#tryNext();
  }

  #tryNext(): void {
    const file = this.#candidates.pop();
    if (file === undefined || this.#tried >= CANDIDATES_MAX) {
      this.#refuse(
        `of the snapshots in ${this.#directory} (${this.#names}) none can be loaded; the newest: ${this.#firstFault}. ` +
          'Restore one from a backup or copy the directory from a healthy server',
      );
      return;
    }
    const path = `${this.#directory}/${file.name}`;
    if (compressionOf(file.name) !== null && (this.#ports.snapshotCodec ?? null) === null) {
      this.#skip(path, 'it is compressed, and no codec is available');
      return;
    }
    looksWhole(this.#ports.disk, path, file.size, (error, isWhole) => {
      if (error !== null) return this.#skip(path, error.message);
      if (!isWhole) return this.#skip(path, 'it is cut short');
      this.#tried++;
      this.#load(path, file);
    });
  }

  #load(path: string, { zxid }: ZxidFile): void {
    const database = this.#makeDatabase();
    new SnapshotLoad(this.#ports, path, database, ({ fault, digest, completeZxid, bytes }) => {
      if (fault !== null) return this.#skip(path, fault);
      database.tree.lastZxid = zxid;
      database.tree.exactFrom = digest === null ? Number.POSITIVE_INFINITY : (completeZxid ?? zxid);
      this.#ports.trace.emit({
        kind: 'recovery-progress',
        message: `${path} loaded: ${database.tree.count} znodes, ${database.sessions.size} sessions, zxid ${hexZxid(zxid)}`,
      });
      this.#events.onSnapshotLoaded({ database, zxid, compression: compressionOf(path), digest, completeZxid, bytes });
    }).start();
  }

  #skip(path: string, reason: string): void {
    if (this.#firstFault === '') this.#firstFault = reason;
    this.#ports.trace.emit({ kind: 'warning', message: `the snapshot ${path} is not usable: ${reason}` });
    this.#tryNext();
  }

  #refuse(message: string): void {
    this.#events.onSnapshotsUnusable(new Error(message));
  }
}

/**
 * Apache's quick test (SnapStream.isValidSnapshot): a plain snapshot must be long enough and its last five bytes the
 * end of a seal, a compressed one must begin like a compressed file.
 */
export function looksWhole(disk: Disk, path: string, size: number, done: DiskDone<boolean>): void {
  const compression = compressionOf(path);
  disk.open(path, { readOnly: true }, (error, file) => {
    if (error !== null) return done(error, false);
    const finish = (readError: DiskError | null, isWhole: boolean): void => {
      file.close();
      done(readError, readError === null && isWhole);
    };
    if (!isLongEnoughForSnapshot(size)) return finish(null, false);
    if (compression === null) {
      file.read(size - SEAL_END_BYTES, SEAL_END_BYTES, (failure, end) => finish(failure, endsLikeSnapshot(end)));
    } else {
      file.read(0, COMPRESSED_HEAD_BYTES, (failure, head) => finish(failure, beginsLikeCompressed(head, compression)));
    }
  });
}

/** Removes partial snapshots that a crash has left; they are never read. */
export function removeUnfinished(
  disk: Disk,
  directory: string,
  entries: readonly DirectoryEntry[],
  done: (error: DiskError | null) => void,
): void {
  const names = entries.map((entry) => entry.name).filter(isUnfinishedSnapshot);
  const removeNext = (): void => {
    const name = names.pop();
    if (name === undefined) {
      done(null);
      return;
    }
    disk.remove(`${directory}/${name}`, (error) => (error === null ? removeNext() : done(error)));
  };
  removeNext();
}
