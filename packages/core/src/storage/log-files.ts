/**
 * The log files, oldest first, and the positions of some of their entries: known without reading the disk, for learners
 * that are behind and for the next role.
 *
 *     log.100000001   ├────●────●────●──┤   a mark every 64 KiB, where this process has read or written the file
 *     log.100004a3f   ├────●────●──┤
 */
import { epochOf, type Zxid } from '@meerkat/protocol';
import { logName, type ZxidFile } from './file-names.ts';

/** A place in the log: the entry `zxid` begins at `position` of the file. */
export interface LogPlace {
  readonly file: ZxidFile;
  readonly zxid: Zxid;
  readonly position: number;
}

interface LogFile extends ZxidFile {
  size: number;
  readonly marks: { readonly zxid: Zxid; readonly position: number }[];
}

/** Minimum distance of two marks in bytes. */
const MARK_DISTANCE_BYTES = 64 * 1024;

export class LogFiles {
  #files: LogFile[] = [];
  /** The file that entries are being read from. */
  #reading: LogFile | null = null;

  /**
   * Oldest first. `size` counts header and entries; for files not read since the start, also their preallocated space.
   */
  get files(): readonly ZxidFile[] {
    return this.#files;
  }

  /** @param files oldest first */
  reset(files: readonly ZxidFile[]): void {
    this.#files = files.map(({ name, zxid, size }) => ({ name, zxid, size, marks: [] }));
    this.#reading = null;
  }

  onStarted(zxid: Zxid, size: number): void {
    const name = logName(zxid);
    // A file that a crash left without any entry is created again.
    this.forget([name]);
    this.#files.push({ name, zxid, size, marks: [] });
  }

  /** The entry `zxid` of a file that is being read begins here; called in the order of entries. */
  onEntryRead(name: string, zxid: Zxid, position: number): void {
    if (this.#reading?.name !== name) this.#reading = this.#files.find((other) => other.name === name) ?? null;
    if (this.#reading !== null) this.#mark(this.#reading, zxid, position);
  }

  #mark({ marks }: LogFile, zxid: Zxid, position: number): void {
    const last = marks.at(-1);
    if (last === undefined || position >= last.position + MARK_DISTANCE_BYTES) marks.push({ zxid, position });
  }

  /**
   * A place at or before the entry `zxid` from which it can be read, preceded by `count` entries and `bytesMax` bytes
   * if the same file has them; null when no file has a mark that early.
   */
  placeBefore(zxid: Zxid, count: number, bytesMax: number): LogPlace | null {
    const file = this.#files[this.indexOf(zxid)];
    if (file === undefined) return null;
    let index = file.marks.findLastIndex((mark) => mark.zxid <= zxid);
    if (index < 0) return null;
    const end = file.marks[index]!.position;
    const isEnough = (mark: LogFile['marks'][number]): boolean =>
      end - mark.position >= bytesMax || (epochOf(mark.zxid) === epochOf(zxid) && zxid - mark.zxid >= count);
    while (index > 0 && !isEnough(file.marks[index]!)) index--;
    return { file, ...file.marks[index]! };
  }

  /** The newest file has grown, by entries that begin with `zxid` at `position`. */
  onWritten(size: number, zxid: Zxid, position: number): void {
    const newest = this.#files.at(-1);
    if (newest === undefined) return;
    newest.size = size;
    this.#mark(newest, zxid, position);
  }

  onRead(name: string, size: number): void {
    const file = this.#files.find((other) => other.name === name);
    if (file !== undefined) file.size = size;
  }

  forget(names: readonly string[]): void {
    this.#files = this.#files.filter(({ name }) => !names.includes(name));
  }

  /** Index of the file that has, or would have, the entry `zxid`; −1 when the log begins later. */
  indexOf(zxid: Zxid): number {
    return this.#files.findLastIndex((file) => file.zxid <= zxid);
  }

  /** Bytes of the file that has `zxid` and of all later ones; Infinity when the log begins later. */
  bytesFrom(zxid: Zxid): number {
    const first = this.indexOf(zxid);
    if (first < 0) return Number.POSITIVE_INFINITY;
    let bytes = 0;
    for (let i = first; i < this.#files.length; i++) bytes += this.#files[i]!.size;
    return bytes;
  }
}
