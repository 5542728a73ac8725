/**
 * Handles the end of a log file once it has been read (`log-damage.ts` classifies it):
 *
 *     the last file      made durable, or cut, or removed when nothing was ever in it, or a fault
 *     an earlier one     made durable as it is; where it is torn, the next file shows whether a txn is missing
 *
 * What was read may be in the kernel's memory only: the process that wrote it may have been killed before its sync.
 * Later txns will be acknowledged from a new file, and must not survive a power cut without the ones before.
 */
import { hexZxid, ZXID_NONE, type Zxid } from '@meerkat/protocol';
import { type DiskDone, DiskError, type DiskFile, type Ports } from '../base/ports.ts';
import type { ZxidFile } from './file-names.ts';
import { classifyLogTail, type LogTail, type LogWriter, type TornOrRotten } from './log-damage.ts';
import { describeDamage, type LogDamage } from './log-fault.ts';
import { LOG_HEADER_BYTES } from './log-format.ts';
import { rewriteLogEnd } from './log-rewrite.ts';
import { ReplacedSet, type StorageDirectories } from './replaced-files.ts';

export interface LogEndOptions extends StorageDirectories {
  /** See `TxnLogReaderOptions`. */
  readonly rewritesEnd: boolean;
  readonly durable: Zxid | null;
  readonly forceSync: boolean;
}

/** A file that has been read to its end. */
export interface ReadLog {
  readonly file: ZxidFile;
  readonly isLastFile: boolean;
  /** According to its header; false when it has none. */
  readonly isOurs: boolean;
  readonly tail: LogTail;
  /** Zxid of the last entry before the tail, in any file. */
  readonly last: Zxid;
  /** The longest entry of the file. */
  readonly entryBytesMax: number;
}

/** The damaged end of a file that is not the last. */
export interface TornEnd {
  readonly text: string;
  /** Whole txns follow it. */
  readonly hasMore: boolean;
}

/** Called once: a disk error, a fault that stops the start, or how reading continues. */
export type LogEndDone = (error: DiskError | null, fault: string | null, torn: TornEnd | null) => void;

export class LogEnd {
  readonly #ports: Pick<Ports, 'disk' | 'trace'>;
  readonly #options: LogEndOptions;

  constructor(ports: Pick<Ports, 'disk' | 'trace'>, options: LogEndOptions) {
    this.#ports = ports;
    this.#options = options;
  }

  /** @param opened will be closed */
  settle(opened: DiskFile, read: ReadLog, done: LogEndDone): void {
    const { tail, last, isLastFile } = read;
    const judgement = classifyLogTail(tail, { last, writer: this.#writerOf(read) });
    const hasHeader = tail.position >= LOG_HEADER_BYTES;
    const found = judgement.kind === 'end' ? null : judgement;
    const damage = hasHeader ? this.#damageOf(read, found) : this.#damageOfHeaderless(read, found);
    if (damage !== null) {
      opened.close();
      done(null, describeDamage({ path: opened.path, position: tail.position }, damage), null);
    } else if (!hasHeader) {
      opened.close();
      this.#removeHeaderless(read, (error) => done(error, null, null));
    } else if (found !== null && isLastFile) {
      opened.close();
      this.#cut(read, found, (error) => done(error, null, null));
    } else {
      const torn = found === null ? null : this.#reportTorn(read, found);
      this.#makeDurable(opened, read, (error) => done(error, null, torn));
    }
  }

  #writerOf({ isOurs }: ReadLog): LogWriter {
    if (!this.#options.forceSync) return 'unsynced';
    return isOurs && this.#options.durable !== null ? 'marked' : 'other';
  }

  /** The fault at the end of a file's entries that stops the start; null without one. */
  #damageOf({ last, isLastFile }: ReadLog, found: TornOrRotten | null): LogDamage | null {
    const durable = isLastFile ? (this.#options.durable ?? ZXID_NONE) : ZXID_NONE;
    const isMissing = durable > last;
    if (found === null) return isMissing ? { reason: null, intact: null, last, durable, isLastFile } : null;
    const { reason, intact, kind } = found;
    return kind === 'rotten' || isMissing ? { reason, intact, last, durable, isLastFile } : null;
  }

  /** The same for a last file whose header is missing or cut, as a crash leaves it before anything else is in it. */
  #damageOfHeaderless({ file, tail, last }: ReadLog, found: TornOrRotten | null): LogDamage | null {
    const durable = this.#options.durable ?? ZXID_NONE;
    const mayBeUnborn = tail.length <= LOG_HEADER_BYTES || !this.#options.forceSync;
    if (mayBeUnborn && file.zxid > durable) return null;
    const reason = 'its header is missing, which is durable before anything else is written';
    return { reason, intact: found?.intact ?? null, last, durable, isLastFile: true };
  }

  #reportTorn({ file, tail }: ReadLog, { reason, intact }: TornOrRotten): TornEnd {
    const text = `${this.#options.logDirectory}/${file.name} at position ${tail.position}: ${reason}`;
    this.#ports.trace.emit({ kind: 'warning', message: `${text}; the next file shows whether a txn is missing` });
    return { text, hasMore: intact !== null };
  }

  /** Cuts what a crash has torn; a copy is kept under another name. */
  #cut(read: ReadLog, { reason, intact }: TornOrRotten, done: DiskDone): void {
    const { disk, trace } = this.#ports;
    const { logDirectory } = this.#options;
    const { name } = read.file;
    const { position, length } = read.tail;
    ReplacedSet.begin(disk, this.#options, read.last, (error, set) => {
      if (set === null) return done(error);
      set.cut(logDirectory, name, { position, end: position + length }, (cutError) => {
        if (cutError !== null) {
          const attempted = `keep what a crash has torn at position ${position} of`;
          return done(new DiskError(attempted, `${logDirectory}/${name}`, cutError.code, cutError));
        }
        const more =
          intact === null
            ? ''
            : `; of the same write ${intact.count} txns are whole, the last one zxid ${hexZxid(intact.lastZxid)}`;
        const kept = `${set.prefix}${name}-from-${position}`;
        trace.emit({ kind: 'log-tail-cut', file: `${logDirectory}/${name}`, position, reason: reason + more, kept });
        if (this.#mustRewrite(read)) this.#rewrite(read, done);
        else done(null);
      });
    });
  }

  /** Removes a last file whose header never reached the disk: it has no content, or none that was synced. */
  #removeHeaderless({ file, tail, last }: ReadLog, done: DiskDone): void {
    const { disk, trace } = this.#ports;
    const { logDirectory } = this.#options;
    const { name } = file;
    const path = `${logDirectory}/${name}`;
    const finish = (error: DiskError | null, reason: string, kept: string | null) => {
      if (error !== null) return done(error);
      trace.emit({ kind: 'log-tail-cut', file: path, position: 0, reason, kept });
      disk.syncDirectory(logDirectory, done);
    };
    if (tail.length <= LOG_HEADER_BYTES) {
      disk.remove(path, (error) => finish(error, 'it has no header and nothing else: the file is removed', null));
      return;
    }
    ReplacedSet.begin(disk, this.#options, last, (error, set) => {
      if (set === null) return done(error);
      const kept = `${set.prefix}${name}`;
      set.move(logDirectory, name, (moveError) => finish(moveError, 'it has no header', kept));
    });
  }

  #makeDurable(opened: DiskFile, read: ReadLog, done: DiskDone): void {
    if (this.#mustRewrite(read)) {
      opened.close();
      this.#rewrite(read, done);
      return;
    }
    opened.sync((error) => {
      opened.close();
      done(error);
    });
  }

  #mustRewrite({ isLastFile }: ReadLog): boolean {
    return isLastFile && this.#options.rewritesEnd;
  }

  #rewrite({ file, tail, entryBytesMax }: ReadLog, done: DiskDone): void {
    const path = `${this.#options.logDirectory}/${file.name}`;
    rewriteLogEnd(this.#ports.disk, path, { end: tail.position, entryBytesMax }, done);
  }
}
