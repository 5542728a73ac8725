/**
 * Reads log files from the first entry to the end, in slices: each completed read is parsed in its own event, while
 * the next one is on its way.
 *
 *     opening ─► header ─► entries ──(no valid entry)──► tail ─► judged ─► next file, or the end
 *                             ▲ └─────┐
 *                             └─ read ┘
 *
 * What it promises, for the entries behind `after` (what a snapshot holds needs no log):
 *
 * 1. They are delivered in ascending order of their zxids, each checked against its checksum.
 * 2. Within an epoch none is missing between two of them, nor between `after` and the first: otherwise it stops with a
 *    fault. Where the epoch changes, the number of txns before is unknown. A first counter other than 1 is a fault in an
 *    ensemble, whose leaders begin with 1, and is reported otherwise.
 * 3. Where a file's entries end, `judgeLogTail` decides: zeros are its end; a torn tail is cut from the last file. In an
 *    earlier file a torn tail is left alone and reported: Apache never cuts one but starts the next file, and rule 2 shows
 *    whether anything is missing. Anything else is a fault.
 */
import { counterOf, epochOf, formatZxid, getInt, isZxid, JuteReader, type Zxid } from '@meerkat/protocol';
import type { DiskError, DiskFile, Ports } from '../ports.ts';
import type { ZxidFile } from './file-names.ts';
import { judgeLogTail } from './log-damage.ts';
import {
  ENTRY_FRAME_BYTES,
  ENTRY_HEAD_BYTES,
  ENTRY_PAYLOAD_BYTES_MIN,
  entryZxidAt,
  faultOfLogHeader,
  isCutLogHeader,
  isWholeEntry,
  LOG_HEADER_BYTES,
  PAYLOAD_BYTES_MAX,
} from './log-format.ts';
import { rewriteLogEnd } from './log-rewrite.ts';
import { LogTailCollector, lengthWithoutZeros } from './log-tail.ts';
import { READS_AHEAD, SliceBuffers } from './slice-buffers.ts';

export interface TxnLogReaderOptions {
  readonly logDirectory: string;
  /** Oldest first. */
  readonly files: readonly ZxidFile[];
  /** Entries up to this zxid are not delivered. */
  readonly after: Zxid;
  /** Where an entry begins in the first file: what stands before it is not read. 0 = at the header. */
  readonly startAt: number;
  /**
   * True when the `size` of each file is where its entries end: this process wrote them and closed the log in good order.
   * What a file was grown by is not looked at then.
   */
  readonly areSizesExact: boolean;
  /** True when an epoch that begins with another counter than 1 lacks txns: every epoch had a leader of its own. */
  readonly isEnsemble: boolean;
  /**
   * The longest entry that there is, when the process that wrote the log has ended, however it did: the end of the log
   * is written once more (`log-rewrite.ts`). null when it was this one.
   */
  readonly rewriteEntryBytesMax: number | null;
}

export interface TxnLogReaderEvents {
  /**
   * One entry, in order: its payload is between the reader's position and its end, and may be looked at until this
   * returns.
   *
   * @returns false when the payload is no txn that this version knows; then a fault follows
   */
  onTxn(payload: JuteReader): boolean;
  /** A file has been read: up to `bytes` it holds header and entries. */
  onLogFileRead(file: ZxidFile, bytes: number): void;
  /** Everything has been delivered and is durable; a torn tail has been cut, durably too. */
  onLogRead(): void;
  /** The log cannot be trusted: which file, where, why and what to do. Nothing follows. */
  onLogFault(error: Error): void;
}

/** Bytes of one read, and so of one slice of parsing: 2000 small entries. */
const SLICE_BYTES = 256 * 1024;
/** Bytes of one read behind the entries. */
const TAIL_SLICE_BYTES = 1024 * 1024;
const PROBE_BYTES = 4096;
const PROBE_DISTANCE_BYTES = 1024 * 1024;

export class TxnLogReader {
  readonly #ports: Pick<Ports, 'disk' | 'trace'>;
  readonly #options: TxnLogReaderOptions;
  readonly #events: TxnLogReaderEvents;
  readonly #buffers: SliceBuffers = new SliceBuffers(SLICE_BYTES);
  readonly #jute: JuteReader = new JuteReader(undefined, PAYLOAD_BYTES_MAX);

  #fileIndex = -1;
  #file: DiskFile | null = null;
  #path = '';
  #size = 0;
  #hasHeader = false;
  /** Position of the next read. */
  #readAt = 0;
  #readsInFlight = 0;
  /** Bytes not parsed yet, and where they stand in the file. */
  #bytes: Uint8Array = new Uint8Array(0);
  #bytesAt = 0;
  #tail: LogTailCollector | null = null;
  #isProbed = false;
  /** Position in its file of the entry that is being delivered. */
  #entryAt = 0;
  /** Zxid of the last entry read, or what stands for it before the first. */
  #lastZxid: Zxid;

  constructor(ports: Pick<Ports, 'disk' | 'trace'>, options: TxnLogReaderOptions, events: TxnLogReaderEvents) {
    this.#ports = ports;
    this.#options = options;
    this.#events = events;
    this.#lastZxid = options.after;
  }

  start(): void {
    this.#openNext();
  }

  /** The zxid of the entry that is being delivered; for `onTxn`, as the next two. */
  get entryZxid(): Zxid {
    return this.#lastZxid;
  }

  /** Where that entry begins in its file. */
  get entryPosition(): number {
    return this.#entryAt;
  }

  get entryFile(): ZxidFile {
    return this.#options.files[this.#fileIndex]!;
  }

  get #isLastFile(): boolean {
    return this.#fileIndex === this.#options.files.length - 1;
  }

  #openNext(): void {
    this.#fileIndex++;
    const { files, logDirectory } = this.#options;
    const file = files[this.#fileIndex];
    if (file === undefined) {
      this.#makeNamesDurable();
      return;
    }
    this.#path = `${logDirectory}/${file.name}`;
    if (this.#isMissingBefore(file.zxid)) {
      this.#fault(0, `its name says that it begins with zxid 0x${formatZxid(file.zxid)}, ${this.#gapText()}`);
      return;
    }
    this.#ports.disk.open(this.#path, { readOnly: true }, (error, opened) => {
      if (error !== null) return this.#diskFault(error);
      this.#file = opened;
      this.#size = this.#options.areSizesExact ? Math.min(file.size, opened.size) : opened.size;
      this.#hasHeader = this.#fileIndex === 0 && this.#options.startAt > 0;
      this.#bytes = new Uint8Array(0);
      this.#bytesAt = 0;
      this.#tail = null;
      this.#isProbed = false;
      this.#readAt = this.#hasHeader ? this.#options.startAt : 0;
      this.#readsInFlight = 0;
      this.#readAhead();
    });
  }

  #readAhead(): void {
    // The first read also of an empty file: its completion is the event that the file is judged with.
    do this.#requestRead(SLICE_BYTES, this.#buffers.room());
    while (this.#readsInFlight < READS_AHEAD && this.#readAt < this.#size);
  }

  /** @param room see `DiskFile.read`; null for bytes that are kept */
  #requestRead(length: number, room: Uint8Array | null): void {
    const file = this.#file!;
    const position = this.#readAt;
    this.#readAt = Math.min(position + length, this.#size);
    this.#readsInFlight++;
    const onRead = (error: DiskError | null, bytes: Uint8Array): void => {
      if (this.#file !== file) return;
      this.#readsInFlight--;
      if (error !== null) this.#diskFault(error);
      else this.#onBytes(position, bytes);
    };
    if (room === null) file.read(position, this.#readAt - position, onRead);
    else file.read(position, this.#readAt - position, onRead, room);
  }

  #onBytes(position: number, bytes: Uint8Array): void {
    if (bytes.length === 0) this.#readAt = this.#size = position;
    const isMore = position + bytes.length < this.#size;
    if (this.#tail !== null) {
      this.#onTailBytes(this.#tail, bytes, isMore);
      return;
    }
    if (this.#bytes.length === 0) this.#bytesAt = position;
    this.#bytes = this.#buffers.join(this.#bytes, bytes);
    // The next reads are on their way while these bytes are parsed.
    if (this.#readAt < this.#size) this.#readAhead();
    if (this.#parse(isMore) && !isMore) this.#onFileRead();
  }

  #onTailBytes(tail: LogTailCollector, bytes: Uint8Array, isMore: boolean): void {
    tail.add(bytes);
    if (!isMore) this.#onFileRead();
    else if (this.#readsInFlight > 0) return;
    else if (tail.length === 0 && !this.#isProbed) this.#probeRest();
    else this.#requestRead(TAIL_SLICE_BYTES, null);
  }

  /**
   * Behind the entries there are zeros, so far: looks at a few bytes of every part of the rest instead of all 64 MiB.
   *
   * What is overlooked so does no harm. Where an entry would begin there are zeros, so that nothing but the end or a
   * hole is possible; close to a hole the rest of a batch that a crash tore may lie unseen, which no reader ever reaches;
   * and more than a crash can leave is so long and dense that a probe meets it.
   */
  #probeRest(): void {
    const file = this.#file!;
    this.#isProbed = true;
    let missing = 0;
    let isClear = true;
    const onProbe = (error: DiskError | null, bytes: Uint8Array): void => {
      if (this.#file !== file) return;
      if (error !== null) {
        this.#diskFault(error);
        return;
      }
      if (lengthWithoutZeros(bytes) > 0) isClear = false;
      if (--missing > 0) return;
      if (isClear) this.#onFileRead();
      else this.#requestRead(TAIL_SLICE_BYTES, null);
    };
    for (let position = this.#readAt; position < this.#size; position += PROBE_DISTANCE_BYTES) {
      missing++;
      file.read(position, Math.min(PROBE_BYTES, this.#size - position), onProbe);
    }
  }

  /** Delivers the entries that are complete. @returns false when a fault has ended the reading */
  #parse(isMore: boolean): boolean {
    const bytes = this.#bytes;
    let at = 0;
    if (!this.#hasHeader) {
      const fault = this.#checkHeader(bytes);
      if (fault !== null) {
        this.#fault(0, fault);
        return false;
      }
      if (this.#tail !== null) return true;
      at = LOG_HEADER_BYTES;
    }
    for (;;) {
      const remaining = bytes.length - at;
      if (remaining < ENTRY_HEAD_BYTES) break;
      const length = getInt(bytes, at + 8);
      const isPlausible = length > 0 && length <= PAYLOAD_BYTES_MAX;
      const entryEnd = at + length + ENTRY_FRAME_BYTES;
      if (isPlausible && this.#bytesAt + entryEnd <= this.#size) {
        if (entryEnd > bytes.length) break;
        if (isWholeEntry(bytes, at, length)) {
          if (!this.#deliver(bytes, at, length)) return false;
          at = entryEnd;
          continue;
        }
      }
      return this.#enterTail(at);
    }
    if (!isMore) return this.#enterTail(at);
    this.#bytes = bytes.subarray(at);
    this.#bytesAt += at;
    return true;
  }

  #checkHeader(bytes: Uint8Array): string | null {
    this.#hasHeader = true;
    if (isCutLogHeader(bytes)) {
      if (!this.#isLastFile) return 'its header is missing or cut';
      // A file that a crash left before its header was on the disk: judged as a whole.
      this.#tail = new LogTailCollector(0);
      this.#tail.add(bytes);
      return null;
    }
    return faultOfLogHeader(bytes);
  }

  #deliver(bytes: Uint8Array, at: number, length: number): boolean {
    const zxid = entryZxidAt(bytes, at);
    if (!isZxid(zxid) || length < ENTRY_PAYLOAD_BYTES_MIN) return this.#faultOfUnknown(at);
    if (zxid <= this.#options.after) return true;
    const position = this.#bytesAt + at;
    if (zxid <= this.#lastZxid) {
      this.#fault(position, `zxid 0x${formatZxid(zxid)} follows 0x${formatZxid(this.#lastZxid)}: the order is broken`);
      return false;
    }
    if (this.#isMissingBefore(zxid)) {
      this.#fault(position, `the next txn is zxid 0x${formatZxid(zxid)}, ${this.#gapText()}`);
      return false;
    }
    if (epochOf(zxid) !== epochOf(this.#lastZxid) && counterOf(zxid) !== 1) {
      if (this.#options.isEnsemble) {
        this.#fault(position, `epoch ${epochOf(zxid)} begins with zxid 0x${formatZxid(zxid)}, ${this.#gapText()}`);
        return false;
      }
      this.#ports.trace.emit({
        kind: 'warning',
        message: `${this.#path}: epoch ${epochOf(zxid)} begins with zxid 0x${formatZxid(zxid)} instead of counter 1`,
      });
    }
    this.#entryAt = position;
    const payloadAt = at + ENTRY_HEAD_BYTES;
    this.#jute.reset(bytes, payloadAt, payloadAt + length);
    this.#lastZxid = zxid;
    if (!this.#events.onTxn(this.#jute)) return this.#faultOfUnknown(at);
    return true;
  }

  #faultOfUnknown(at: number): false {
    this.#fault(this.#bytesAt + at, 'an entry has the right checksum but is not a txn that this version knows');
    return false;
  }

  #isMissingBefore(zxid: Zxid): boolean {
    return zxid > this.#lastZxid + 1 && epochOf(zxid) === epochOf(this.#lastZxid);
  }

  #gapText(): string {
    const last = this.#lastZxid;
    const before =
      last === this.#options.after
        ? `the snapshot ends with 0x${formatZxid(last)}`
        : `the log has 0x${formatZxid(last)} before it`;
    return `but ${before}: txns are missing between them`;
  }

  /** From `at` on there is no valid entry any more; what is there is collected to the end of the file. */
  #enterTail(at: number): true {
    const tail = new LogTailCollector(this.#bytesAt + at);
    // The collector keeps what it gets; the buffers are not used again before the next file.
    tail.add(this.#bytes.subarray(at));
    this.#bytes = new Uint8Array(0);
    this.#tail = tail;
    return true;
  }

  #onFileRead(): void {
    const tail = this.#tail!;
    const file = this.#file!;
    this.#file = null;
    const { position } = tail;
    const judgement = judgeLogTail(tail.collected());
    const hasHeader = position >= LOG_HEADER_BYTES;
    this.#events.onLogFileRead(this.#options.files[this.#fileIndex]!, hasHeader ? position : 0);
    if (judgement.kind === 'end' && hasHeader) {
      this.#makeDurable(file, position);
      return;
    }
    if (judgement.kind === 'torn' && hasHeader && !this.#isLastFile) {
      this.#ports.trace.emit({
        kind: 'warning',
        message: `${this.#path} at position ${position}: ${judgement.reason}; the next file shows whether a txn is missing`,
      });
      this.#makeDurable(file, position);
      return;
    }
    file.close();
    if (judgement.kind === 'rotten') {
      this.#fault(position, judgement.reason);
    } else if (judgement.kind === 'end' || !hasHeader) {
      this.#removeUnborn(judgement.kind === 'torn' ? judgement.reason : 'no header');
    } else {
      this.#ports.trace.emit({ kind: 'log-tail-cut', file: this.#path, position, reason: judgement.reason });
      this.#cut(position);
    }
  }

  /**
   * What was read may be in the kernel's memory only: the process that wrote it may have been killed before its sync.
   * The txns behind it will be acknowledged from a file of their own, and a power cut must not leave them without these.
   */
  #makeDurable(file: DiskFile, end: number): void {
    if (this.#mustRewrite) {
      file.close();
      this.#rewrite(end);
      return;
    }
    file.sync((error) => {
      file.close();
      if (error !== null) this.#diskFault(error);
      else this.#openNext();
    });
  }

  get #mustRewrite(): boolean {
    return this.#isLastFile && this.#options.rewriteEntryBytesMax !== null;
  }

  #rewrite(end: number): void {
    const entryBytesMax = this.#options.rewriteEntryBytesMax ?? 0;
    rewriteLogEnd(this.#ports.disk, this.#path, { end, entryBytesMax }, (error) => {
      if (error !== null) this.#diskFault(error);
      else this.#openNext();
    });
  }

  /** The same for the names of the files. */
  #makeNamesDurable(): void {
    const { files, logDirectory, isEnsemble } = this.#options;
    // Where there are none any more, a truncation may have removed them in the kernel's memory only.
    if (files.length === 0 && !isEnsemble) {
      this.#events.onLogRead();
      return;
    }
    this.#ports.disk.syncDirectory(logDirectory, (error) => {
      if (error !== null) this.#diskFault(error);
      else this.#events.onLogRead();
    });
  }

  #cut(position: number): void {
    const { disk } = this.#ports;
    disk.open(this.#path, { readOnly: false }, (error, file) => {
      if (error !== null) return this.#diskFault(error);
      file.truncate(position, (truncateError) => {
        if (truncateError !== null) return this.#diskFault(truncateError);
        file.sync((syncError) => {
          file.close();
          if (syncError !== null) return this.#diskFault(syncError);
          if (this.#mustRewrite) this.#rewrite(position);
          else this.#openNext();
        });
      });
    });
  }

  /** Removes a last file whose header never reached the disk: nothing in it can have been acknowledged. */
  #removeUnborn(reason: string): void {
    const { disk, trace } = this.#ports;
    trace.emit({ kind: 'log-tail-cut', file: this.#path, position: 0, reason: `${reason}; the file is removed` });
    disk.remove(this.#path, (error) => {
      if (error !== null) return this.#diskFault(error);
      disk.syncDirectory(this.#options.logDirectory, (syncError) => {
        if (syncError !== null) return this.#diskFault(syncError);
        this.#openNext();
      });
    });
  }

  #fault(position: number, reason: string): void {
    this.#file?.close();
    this.#file = null;
    this.#events.onLogFault(
      new Error(
        `${this.#path} at position ${position}: ${reason}. Acknowledged txns may be damaged or missing, so this server ` +
          'does not start. Restore the directory from a backup or copy it from a healthy server; to go on without ' +
          `what follows, move the later log files away and run: truncate -s ${position} ${this.#path}`,
      ),
    );
  }

  #diskFault(error: DiskError): void {
    this.#file?.close();
    this.#file = null;
    this.#events.onLogFault(new Error(`the log cannot be read and synced: ${error.message}`, { cause: error }));
  }
}
