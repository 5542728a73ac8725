/**
 * Files replaced by an installation and the parts cut by a truncation are kept for a while, under names that neither
 * this server nor Apache reads: both look for names that begin with `log.` or `snapshot.`.
 *
 *     replaced-<set>-<zxid>-<name>                   a log or snapshot as it was
 *     replaced-<set>-<zxid>-<name>-from-<position>   the end of a log, from this byte on
 *
 * A set is what one operation has replaced; sets are numbered from 1. `zxid` is the end of the history after that.
 *
 * A file is set aside by a rename within its directory, so that after a crash it has one name or the other; the end of
 * a log is copied, durably, before it is cut.
 *
 * A server whose history is replaced repeatedly must neither fill its disk, nor lose its original history to what it
 * was sent later. So when a new set is added, two of the old ones are always kept, the newest and the one whose history
 * reached furthest, and others only up to `SETS_MAX` and `BYTES_MAX`. The purge removes them eventually
 * (`retention.ts`).
 */
import { formatZxid, parseZxid, type Zxid } from '@meerkat/protocol';
import type { DirectoryEntry, Disk, DiskDone, DiskError, DiskFile } from '../base/ports.ts';

/** Maximum number of sets. */
const SETS_MAX = 16;
/** Maximum total size of the sets that are not always kept. */
const BYTES_MAX: number = 1024 * 1024 * 1024;
/** Bytes of one read and one write. */
const SLICE_BYTES = 1024 * 1024;

const REPLACED_NAME = /^replaced-(\d{1,15})-([0-9a-f]{1,16})-(?:log|snapshot)\.([0-9a-f]{1,16})/;

export interface StorageDirectories {
  readonly snapshotDirectory: string;
  readonly logDirectory: string;
}

/** A file of a set. */
interface ReplacedFile {
  readonly path: string;
  readonly set: number;
  /** Where the history ended after the replacement. */
  readonly zxid: Zxid;
  /** The zxid of its own name. */
  readonly ownZxid: Zxid;
  readonly size: number;
}

/** Sets aside the files that one operation replaces. */
export class ReplacedSet {
  readonly #disk: Disk;
  readonly #prefix: string;

  /**
   * Makes room for a new set and numbers it.
   *
   * @param zxid where the history ends from now on
   */
  static begin(
    disk: Disk,
    directories: StorageDirectories,
    zxid: Zxid,
    done: (error: DiskError | null, set: ReplacedSet | null) => void,
  ): void {
    listReplaced(disk, directories, (error, files) => {
      if (error !== null) return done(error, null);
      const number = 1 + files.reduce((largest, { set }) => Math.max(largest, set), 0);
      const expired = expiredOf(files).map(({ path }) => path);
      const removeNext = (removeError: DiskError | null): void => {
        const path = expired.pop();
        if (removeError !== null && removeError.code !== 'ENOENT') done(removeError, null);
        else if (path !== undefined) disk.remove(path, removeNext);
        else done(null, new ReplacedSet(disk, `replaced-${number}-${formatZxid(zxid)}-`));
      };
      removeNext(null);
    });
  }

  private constructor(disk: Disk, prefix: string) {
    this.#disk = disk;
    this.#prefix = prefix;
  }

  /** Prefix of the names of its files. */
  get prefix(): string {
    return this.#prefix;
  }

  /** Sets a file aside; durable with the next sync of the directory. */
  move(directory: string, name: string, done: DiskDone): void {
    this.#disk.rename(`${directory}/${name}`, `${directory}/${this.#prefix}${name}`, done);
  }

  /** Cuts the file at `position`, durably, once the bytes from there up to `end` have been copied. */
  cut(
    directory: string,
    name: string,
    { position, end }: { readonly position: number; readonly end: number },
    done: DiskDone,
  ): void {
    const disk = this.#disk;
    const path = `${directory}/${name}`;
    disk.open(path, { readOnly: false }, (error, file) => {
      if (error !== null) return done(error);
      const finish = (failure: DiskError | null): void => {
        file.close();
        done(failure);
      };
      const copyPath = `${directory}/${this.#prefix}${name}-from-${position}`;
      disk.create(copyPath, (createError, target) => {
        if (createError !== null) return finish(createError);
        copy(file, position, end, target, (copyError) => {
          target.close();
          // A partial copy is useless, and takes space that may be exactly what is missing.
          if (copyError !== null) return disk.remove(copyPath, () => finish(copyError));
          disk.syncDirectory(directory, (syncError) => {
            if (syncError !== null) return finish(syncError);
            let failure: DiskError | null = null;
            file.truncate(position, (truncateError) => {
              failure = truncateError;
            });
            file.sync((lastError) => finish(failure ?? lastError));
          });
        });
      });
    });
  }
}

/** The files of all sets whose history has moved beyond `zxid`. */
export function replacedBefore(zxid: Zxid, directory: string, entries: readonly DirectoryEntry[]): string[] {
  return replacedOf(directory, entries).flatMap((file) => (file.zxid < zxid ? [file.path] : []));
}

function listReplaced(
  disk: Disk,
  { snapshotDirectory, logDirectory }: StorageDirectories,
  done: (error: DiskError | null, files: readonly ReplacedFile[]) => void,
): void {
  disk.list(snapshotDirectory, (error, snapshotEntries) => {
    if (error !== null) return done(error, []);
    const files = replacedOf(snapshotDirectory, snapshotEntries);
    if (logDirectory === snapshotDirectory) return done(null, files);
    disk.list(logDirectory, (logError, logEntries) => {
      if (logError !== null) return done(logError, []);
      done(null, [...files, ...replacedOf(logDirectory, logEntries)]);
    });
  });
}

function replacedOf(directory: string, entries: readonly DirectoryEntry[]): ReplacedFile[] {
  return entries.flatMap(({ name, size }) => {
    const [, set, digits = '', ownDigits = ''] = REPLACED_NAME.exec(name) ?? [];
    const zxid = parseZxid(digits);
    const ownZxid = parseZxid(ownDigits);
    if (zxid === null || ownZxid === null) return [];
    return [{ path: `${directory}/${name}`, set: Number(set), zxid, ownZxid, size }];
  });
}

/** Files to remove when another set is added. */
function expiredOf(files: readonly ReplacedFile[]): readonly ReplacedFile[] {
  const [newest] = files.toSorted((one, other) => other.set - one.set);
  const [furthest] = files.toSorted((one, other) => other.ownZxid - one.ownZxid || other.set - one.set);
  const kept = new Set([newest?.set, furthest?.set]);
  const others = [...new Set(files.map(({ set }) => set))].filter((set) => !kept.has(set)).sort((a, b) => b - a);
  let bytes = 0;
  for (const set of others) {
    for (const file of files) if (file.set === set) bytes += file.size;
    if (bytes > BYTES_MAX || kept.size >= SETS_MAX - 1) break;
    kept.add(set);
  }
  return files.filter(({ set }) => !kept.has(set));
}

function copy(source: DiskFile, start: number, end: number, target: DiskFile, done: DiskDone): void {
  const copyFrom = (position: number): void => {
    if (position >= end) {
      target.sync(done);
      return;
    }
    source.read(position, Math.min(SLICE_BYTES, end - position), (error, bytes) => {
      if (error !== null) return done(error);
      // The file is shorter than expected.
      if (bytes.length === 0) return target.sync(done);
      target.write(position - start, bytes, (writeError) => {
        if (writeError !== null) return done(writeError);
        copyFrom(position + bytes.length);
      });
    });
  };
  copyFrom(start);
}
