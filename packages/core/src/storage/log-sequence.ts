/**
 * Checks the zxids of a log, entry by entry and file by file, for missing txns.
 *
 * In our own files each zxid follows the one before it, without exception, and the header names the zxid that the first
 * one follows (`log-format.ts`): the previous file must end with it. So neither a missing file nor a missing end goes
 * unnoticed.
 *
 * Apache's files have no such zxid, and Apache writes two things that we never do:
 *
 *     … 41 42 43 | 42 43 44 …      a follower that synchronizes again logs the same txns again: they are skipped
 *     … 41 43 44 …                 a multi that cannot be processed takes a zxid but logs no txn: the hole is reported
 *
 * Two adjacent entries were written one after the other, whatever the distance of their zxids. Between two files,
 * though, or the snapshot and the first file, a file may be missing: there a hole is accepted only if it is small
 * (`HOLE_BETWEEN_FILES_MAX`). Where the epoch changes, the number of txns of the old one is unknown. An epoch begins
 * with counter 1; where one of Apache's does not, the same rule applies in an ensemble, and a standalone server reports
 * it.
 */
import { counterOf, epochOf, hexZxid, type Zxid } from '@meerkat/protocol';
import { isNext } from '../zab/recent-log.ts';
import type { ZxidFile } from './file-names.ts';

export interface LogSequenceOptions {
  /** The history up to here is known: entries up to this zxid are ignored. */
  readonly after: Zxid;
  /** True when an epoch that begins with another counter than 1 lacks txns: every epoch had a different leader. */
  readonly isEnsemble: boolean;
}

/** Zxids without a txn that are accepted between two of Apache's files; more mean a missing file. */
const HOLE_BETWEEN_FILES_MAX = 8;

export class LogSequence {
  readonly #options: LogSequenceOptions;
  #last: Zxid;
  /** The zxid before the file according to its header; null for a file of Apache. */
  #before: Zxid | null = null;
  #isFirst = true;
  #holes = { count: 0, first: '' };
  #repeats = { count: 0, first: 0, last: 0 };
  #said: string[] = [];

  constructor(options: LogSequenceOptions) {
    this.#options = options;
    this.#last = options.after;
  }

  /** Zxid of the last entry, or its substitute before the first. */
  get last(): Zxid {
    return this.#last;
  }

  /**
   * @param before the zxid before the file according to its header; null when an Apache server wrote it
   * @returns what is missing before the file, or null
   */
  beginFile(file: ZxidFile, before: Zxid | null): string | null {
    const last = this.#last;
    this.#before = before;
    this.#isFirst = true;
    this.#holes = { count: 0, first: '' };
    this.#repeats = { count: 0, first: 0, last: 0 };
    this.#said = [];
    if (before === null) {
      const isFar = epochOf(file.zxid) === epochOf(last) && file.zxid - last - 1 > HOLE_BETWEEN_FILES_MAX;
      return isFar ? `its name says that it begins with zxid ${hexZxid(file.zxid)}, ${this.#lacking()}` : null;
    }
    if (before > Math.max(last, 0)) return `it continues after zxid ${hexZxid(before)}, ${this.#lacking()}`;
    if (before < last && before > this.#options.after) {
      return `it continues after zxid ${hexZxid(before)}, but the log has ${hexZxid(last)} before it: one of the two is from another history`;
    }
    return null;
  }

  /** Starts in the middle of a file, whose header is not read again. */
  continueFile(): void {
    this.#before = null;
    this.#isFirst = false;
  }

  /**
   * True when the entry is already known, from the snapshot or because an Apache server logged it twice. Must be called
   * before `take`.
   */
  isKnown(zxid: Zxid): boolean {
    if (zxid > this.#last) return false;
    if (zxid > this.#options.after) {
      if (this.#before !== null) return false;
      const { count, first } = this.#repeats;
      this.#repeats = { count: count + 1, first: count === 0 ? zxid : first, last: zxid };
    }
    this.#isFirst = false;
    return true;
  }

  /** Takes the next entry. @returns why it cannot come next, or null */
  take(zxid: Zxid): string | null {
    const fault = zxid === this.#last + 1 ? null : this.#checkGap(zxid);
    if (fault !== null) return fault;
    this.#last = zxid;
    this.#isFirst = false;
    return null;
  }

  /** The messages about the file, once it has been read. */
  endFile(): readonly string[] {
    const said = [...this.#said];
    const { count, first, last } = this.#repeats;
    if (count > 0) {
      said.push(
        `${count} txns from ${hexZxid(first)} to ${hexZxid(last)} are in the log a second time and skipped: Apache's servers write ` +
          'them again when they synchronize again',
      );
    }
    if (this.#holes.count > 0) {
      const more = this.#holes.count > 1 ? ` and in ${this.#holes.count - 1} more places` : '';
      said.push(
        `${this.#holes.first}${more} zxids have no txn: Apache's servers give one to a multi that they cannot process. The ` +
          'txns before and after are whole',
      );
    }
    return said;
  }

  #checkGap(zxid: Zxid): string | null {
    const last = this.#last;
    if (zxid <= last) return `zxid ${hexZxid(zxid)} follows ${hexZxid(last)}: the order is broken`;
    if (isNext(last, zxid)) return null;
    const isSameEpoch = epochOf(zxid) === epochOf(last);
    const missing = isSameEpoch ? zxid - last - 1 : counterOf(zxid) - 1;
    if (this.#before !== null || (this.#isFirst && missing > HOLE_BETWEEN_FILES_MAX)) {
      const next = isSameEpoch ? 'the next txn is zxid' : `epoch ${epochOf(zxid)} begins with zxid`;
      if (isSameEpoch || this.#before !== null || this.#options.isEnsemble)
        return `${next} ${hexZxid(zxid)}, ${this.#lacking()}`;
      this.#said.push(`${next} ${hexZxid(zxid)} instead of counter 1`);
      return null;
    }
    const { count, first } = this.#holes;
    const where = isSameEpoch ? `between ${hexZxid(last)} and ${hexZxid(zxid)}` : `before ${hexZxid(zxid)}`;
    this.#holes = { count: count + 1, first: count === 0 ? where : first };
    return null;
  }

  #lacking(): string {
    const before =
      this.#last === this.#options.after
        ? `the snapshot ends with ${hexZxid(this.#last)}`
        : `the log has ${hexZxid(this.#last)} before it`;
    return `but ${before}: txns are missing between them`;
  }
}
