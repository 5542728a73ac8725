/**
 * Reads logged txns back for learners that are behind, while the log is being written.
 *
 *     after ─► the file that has it ─► … skipped … ─► after+1, … ─► upTo, or enough bytes ─► cursor for the next call
 *
 * Only durable txns are read, so they must be complete: the caller passes a zxid up to which that holds. If anything is
 * wrong (a gap, a bad checksum, a file removed by the purge, a log that begins too late) the result is null, and the
 * learner gets a snapshot instead: a result is always a contiguous part of the history.
 */
import { getInt, isZxid, ZXID_NONE, type Zxid } from '@meerkat/protocol';
import type { Disk, DiskError, DiskFile } from '../base/ports.ts';
import type { HistoryEntry } from '../zab/history.ts';
import { isNext } from '../zab/recent-log.ts';
import type { ZxidFile } from './file-names.ts';
import type { LogFiles } from './log-files.ts';
import {
  ENTRY_FRAME_BYTES,
  ENTRY_HEAD_BYTES,
  ENTRY_PAYLOAD_BYTES_MIN,
  entryZxidAt,
  faultOfLogHeader,
  isWholeEntry,
  LOG_HEADER_BYTES,
  PAYLOAD_BYTES_MAX,
  zxidBeforeLog,
} from './log-format.ts';

export type HistoryDone = (entries: readonly HistoryEntry[] | null) => void;

export interface HistoryRange {
  readonly after: Zxid;
  /** Everything up to here is durable. */
  readonly upTo: Zxid;
  /** Payload bytes after which no further entry is added. */
  readonly bytesMax: number;
}

/** Where the entry after `zxid` begins. */
interface Cursor {
  readonly zxid: Zxid;
  readonly file: ZxidFile;
  readonly position: number;
}

/** One for each learner that catches up at the same time; a call without one has to find its position. */
const CURSORS_MAX = 16;
const SLICE_BYTES = 256 * 1024;
const SLICE_BYTES_MIN = 16 * 1024;

export class LogHistory {
  readonly #disk: Disk;
  readonly #logDirectory: string;
  readonly #files: LogFiles;
  #cursors: Cursor[] = [];

  constructor(disk: Disk, logDirectory: string, files: LogFiles) {
    this.#disk = disk;
    this.#logDirectory = logDirectory;
    this.#files = files;
  }

  /**
   * Reads the txns after `after`, at most up to `upTo`. A call that continues where an earlier one ended does not
   * search again.
   *
   * @param done called once, in a later event: the entries in order, none when `upTo` is not above `after`; null when
   *   the log does not have them all. The payloads are not modified afterwards.
   */
  read(range: HistoryRange, done: HistoryDone): void {
    const index = this.#cursors.findIndex(({ zxid }) => zxid === range.after);
    const cursor = index < 0 ? null : this.#cursors.splice(index, 1)[0]!;
    const cursors = this.#cursors;
    new HistoryRead(this.#disk, this.#logDirectory, this.#files, range, cursor, (entries, next) => {
      // After a truncation, `clear` has replaced the list.
      if (next !== null) cursors.push(next);
      if (cursors.length > CURSORS_MAX) cursors.shift();
      done(entries);
    }).start();
  }

  /** Drops all cursors: the log was truncated or replaced. */
  clear(): void {
    this.#cursors = [];
  }
}

class HistoryRead {
  readonly #disk: Disk;
  readonly #logDirectory: string;
  readonly #files: LogFiles;
  readonly #range: HistoryRange;
  readonly #done: (entries: readonly HistoryEntry[] | null, next: Cursor | null) => void;
  readonly #entries: HistoryEntry[] = [];
  #bytes = 0;
  /** The last entry passed. */
  #lastZxid: Zxid = ZXID_NONE;
  /** True once `after` has been passed: entries are collected. */
  #isThere = false;
  #file: ZxidFile | null = null;
  #position = 0;

  constructor(
    disk: Disk,
    logDirectory: string,
    files: LogFiles,
    range: HistoryRange,
    cursor: Cursor | null,
    done: (entries: readonly HistoryEntry[] | null, next: Cursor | null) => void,
  ) {
    this.#disk = disk;
    this.#logDirectory = logDirectory;
    this.#files = files;
    this.#range = range;
    this.#done = done;
    if (cursor !== null) {
      this.#isThere = true;
      this.#lastZxid = cursor.zxid;
      this.#file = cursor.file;
      this.#position = cursor.position;
    }
  }

  start(): void {
    const { after, upTo } = this.#range;
    if (upTo <= after) {
      this.#answerLater([]);
      return;
    }
    this.#file ??= this.#files.files[Math.max(this.#files.indexOf(after), 0)] ?? null;
    if (this.#file === null || this.#file.zxid > after + 1) this.#answerLater(null);
    else this.#open(this.#file);
  }

  /** Results are delivered as an event, even if nothing has to be read. */
  #answerLater(entries: readonly HistoryEntry[] | null): void {
    this.#disk.list(this.#logDirectory, () => this.#done(entries, null));
  }

  #open(file: ZxidFile): void {
    this.#file = file;
    this.#disk.open(`${this.#logDirectory}/${file.name}`, { readOnly: true }, (error, opened) => {
      if (error !== null) this.#done(null, null);
      else this.#read(opened, 0);
    });
  }

  /** @param lengthMin what the next entry needs */
  #read(file: DiskFile, lengthMin: number): void {
    const wanted = this.#isThere ? this.#range.bytesMax - this.#bytes : SLICE_BYTES;
    const length = Math.max(lengthMin, Math.min(SLICE_BYTES, Math.max(SLICE_BYTES_MIN, wanted)));
    file.read(this.#position, length, (error, bytes) => this.#onBytes(file, error, bytes));
  }

  #onBytes(file: DiskFile, error: DiskError | null, bytes: Uint8Array): void {
    if (error !== null) {
      this.#end(file, false);
      return;
    }
    const start = this.#position;
    const isLast = start + bytes.length >= file.size;
    let at = 0;
    if (start === 0) {
      if (bytes.length < LOG_HEADER_BYTES || faultOfLogHeader(bytes) !== null) {
        this.#end(file, false);
        return;
      }
      // A zeroed entry looks like the end of the previous file.
      const before = zxidBeforeLog(bytes);
      if (before !== null && this.#lastZxid !== ZXID_NONE && before !== this.#lastZxid) {
        this.#end(file, false);
        return;
      }
      at = LOG_HEADER_BYTES;
    }
    for (;;) {
      this.#position = start + at;
      const remaining = bytes.length - at;
      if (remaining < ENTRY_HEAD_BYTES) {
        if (isLast) this.#onFileEnd(file, bytes.subarray(at));
        else this.#read(file, 0);
        return;
      }
      const length = getInt(bytes, at + 8);
      if (length === 0) {
        this.#onFileEnd(file, bytes.subarray(at, at + ENTRY_HEAD_BYTES));
        return;
      }
      if (length < ENTRY_PAYLOAD_BYTES_MIN || length > PAYLOAD_BYTES_MAX) {
        this.#end(file, false);
        return;
      }
      const entryBytes = length + ENTRY_FRAME_BYTES;
      if (entryBytes > remaining) {
        if (isLast) this.#end(file, false);
        else this.#read(file, entryBytes);
        return;
      }
      const zxid = entryZxidAt(bytes, at);
      if (!isWholeEntry(bytes, at, length) || !isZxid(zxid)) {
        this.#end(file, false);
        return;
      }
      if (zxid > this.#range.upTo) {
        this.#end(file, this.#isThere);
        return;
      }
      if (!this.#pass(zxid, bytes.subarray(at + ENTRY_HEAD_BYTES, at + ENTRY_HEAD_BYTES + length))) {
        this.#end(file, false);
        return;
      }
      at += entryBytes;
      if (zxid === this.#range.upTo || this.#bytes >= this.#range.bytesMax) {
        this.#position = start + at;
        this.#end(file, true);
        return;
      }
    }
  }

  /** @returns false when something is missing before it */
  #pass(zxid: Zxid, payload: Uint8Array): boolean {
    const { after } = this.#range;
    const last = this.#lastZxid;
    if (!this.#isThere) {
      if (zxid <= after) {
        this.#isThere = zxid === after;
        this.#lastZxid = zxid;
        return true;
      }
      // The log may begin right after `after`; if it had entries before, there is a gap.
      if (last !== ZXID_NONE || zxid !== after + 1) return false;
      this.#isThere = true;
    } else if (!isNext(last, zxid)) {
      return false;
    }
    this.#lastZxid = zxid;
    this.#entries.push({ zxid, payload });
    this.#bytes += payload.length;
    return true;
  }

  /** Zeros follow the entries of a file, and the next file continues: the last entry wanted has not been read yet. */
  #onFileEnd(file: DiskFile, bytes: Uint8Array): void {
    const zxid = this.#file!.zxid;
    const next = this.#files.files.find((other) => other.zxid > zxid);
    if (next === undefined || bytes.some((byte) => byte !== 0)) {
      this.#end(file, false);
      return;
    }
    file.close();
    this.#position = 0;
    this.#open(next);
  }

  #end(file: DiskFile, isRight: boolean): void {
    file.close();
    if (!isRight) {
      this.#done(null, null);
      return;
    }
    const cursor = { zxid: this.#lastZxid, file: this.#file!, position: this.#position };
    this.#done(this.#entries, cursor);
  }
}
