/**
 * What an installation replaces and a truncation cuts is kept for a while, under names that nobody reads: neither this
 * server nor Apache's, which both look for names that begin with `log.` or `snapshot.`.
 *
 *     replaced-<set>-<zxid>-<name>                   a log or snapshot as it was
 *     replaced-<set>-<zxid>-<name>-from-<position>   the end of a log, from this byte on
 *
 * A set is what one occasion has replaced; sets are counted from 1. `zxid` is where the history ended then.
 *
 * A file is set aside by a rename within its directory, so that a crash leaves it under one name or the other; the end of a
 * log is copied, durably, before it is cut.
 *
 * A server whose history is replaced again and again must not fill its disk, nor lose what it had at first to what it was
 * sent since. So when a new set comes, two of the old ones stay in any case, the newest and the one whose history reached
 * furthest, and others only up to `SETS_MAX` and `BYTES_MAX`. The purge removes them in time (`retention.ts`).
 */
import { formatZxid, parseZxid, type Zxid } from '@meerkat/protocol';
import type { DirectoryEntry, Disk, DiskDone, DiskError, DiskFile } from '../base/ports.ts';

/** Sets that are there at most. */
const SETS_MAX = 16;
/** Bytes of all sets but those that stay in any case. */
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
  /** Where the history ended from then on. */
  readonly zxid: Zxid;
  /** What its own name said. */
  readonly ownZxid: Zxid;
  readonly size: number;
}

/** One occasion: what it replaces goes here. */
export class ReplacedSet {
  readonly #disk: Disk;
  readonly #prefix: string;

  /**
   * Makes room for a set and counts it.
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

  /** What the names of its files begin with. */
  get prefix(): string {
    return this.#prefix;
  }

  /** Sets a file aside; durable with the next sync of the directory. */
  move(directory: string, name: string, done: DiskDone): void {
    this.#disk.rename(`${directory}/${name}`, `${directory}/${this.#prefix}${name}`, done);
  }

  /** Cuts the file at `position`, durably, once what it has from there up to `end` has been copied. */
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
          // Half of a copy is of no use, and takes room that may be what is wanting.
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

/** The files of all sets whose history has gone on beyond `zxid`. */
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

/** What goes when another set comes. */
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
      // The file ends earlier than it was said to.
      if (bytes.length === 0) return target.sync(done);
      target.write(position - start, bytes, (writeError) => {
        if (writeError !== null) return done(writeError);
        copyFrom(position + bytes.length);
      });
    });
  };
  copyFrom(start);
}
