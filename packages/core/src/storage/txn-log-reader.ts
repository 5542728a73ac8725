/**
 * Reads log files from the first entry to the end, in slices: each completed read is parsed in its own event, while the
 * next one is in progress.
 *
 *     opening ─► header ─► entries ──(no valid entry)──► tail ─► checked ─► next file, or the end
 *                             ▲ └─────┐
 *                             └─ read ┘
 *
 * Guarantees, for the entries after `after` (what a snapshot contains needs no log):
 *
 * 1. They are delivered once, in ascending order of their zxids, each verified against its checksum.
 * 2. None is missing between two of them, nor between `after` and the first, as far as the log can tell
 *    (`log-sequence.ts`): otherwise it stops with a fault.
 * 3. Where a file's entries end, `classifyLogTail` decides: zeros are its end; a torn tail is cut from the last file. In
 *    an earlier file a torn tail is kept and reported: Apache never cuts one but starts the next file, and rule 2 shows
 *    whether anything is missing. Anything else is a fault.
 * 4. The log reaches as far as this server has acknowledged (`durable-mark.ts`): otherwise it stops with a fault.
 */
import { epochOf, getInt, isZxid, JuteReader, ZXID_NONE, type Zxid } from '@meerkat/protocol';
import type { DiskError, Ports } from '../base/ports.ts';
import type { KnownZnode } from '../tree/known-znode.ts';
import type { ZxidFile } from './file-names.ts';
import { LogEnd, type TornEnd } from './log-end.ts';
import { describeDamage, describeLost, describeMissing } from './log-fault.ts';
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
  zxidBeforeLog,
} from './log-format.ts';
import { AHEAD_MAX, LogScan } from './log-scan.ts';
import { LogSequence } from './log-sequence.ts';
import { LogSlices } from './log-slices.ts';
import { LogTailCollector } from './log-tail.ts';
import type { TxnLogReaderEvents, TxnLogReaderOptions } from './txn-log-reader-host.ts';

const NOTHING = new Uint8Array(0);

export class TxnLogReader {
  readonly #ports: Pick<Ports, 'disk' | 'scans' | 'trace'>;
  readonly #options: TxnLogReaderOptions;
  readonly #events: TxnLogReaderEvents;
  readonly #jute: JuteReader = new JuteReader(undefined, PAYLOAD_BYTES_MAX);

  #fileIndex = -1;
  #path = '';
  #hasHeader = false;
  /** Bytes not parsed yet, and their position in the file. */
  #bytes: Uint8Array = NOTHING;
  #bytesAt = 0;
  #tail: LogTailCollector | null = null;
  /** What is missing before the last file, unless its header turns out to be cut. */
  #missing: string | null = null;
  /** Offsets of the entries passed to `onEntriesAhead`. */
  readonly #ahead: Int32Array = new Int32Array(AHEAD_MAX);
  /** Bytes of the longest entry read from the file. */
  #longestEntry = 0;
  /** Position in its file of the entry that is being delivered. */
  #entryAt = 0;
  /** According to the header of the file. */
  #isOurs = false;
  /** The damaged end of the previous file, until the first entry of this one. */
  #torn: TornEnd | null = null;
  readonly #slices: LogSlices;
  readonly #scan: LogScan;
  readonly #sequence: LogSequence;
  readonly #end: LogEnd;

  /** @param ports with `scans`, another thread reads ahead where it can */
  constructor(
    ports: Pick<Ports, 'disk' | 'scans' | 'trace'>,
    options: TxnLogReaderOptions,
    events: TxnLogReaderEvents,
  ) {
    this.#ports = ports;
    this.#options = options;
    this.#events = events;
    this.#slices = new LogSlices({
      onSlice: (position, bytes, isMore) => this.#onSlice(position, bytes, isMore),
      onZeros: () => this.#onFileRead(),
      onReadFailed: (error) => this.#diskFault(error),
    });
    this.#scan = new LogScan(ports.scans, {
      onScannedEntry: (bytes, at, length, position, known) => this.#deliver(bytes, at, length, position, known),
      onScannedAhead: (rows, row, rowsEnd) => events.onScannedAhead?.(rows, row, rowsEnd),
      onMemory: (memory) => events.onMemory?.(memory) === true,
      onScanEnd: (position) => this.#slices.resume(position),
    });
    this.#sequence = new LogSequence(options);
    this.#end = new LogEnd(ports, options);
  }

  start(): void {
    this.#openNext();
  }

  /** The zxid of the entry that is being delivered; for `onTxn`, like the next two getters. */
  get entryZxid(): Zxid {
    return this.#sequence.last;
  }

  /** Position of that entry in its file. */
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
    this.#ports.disk.open(this.#path, { readOnly: true }, (error, opened) => {
      if (error !== null) return this.#diskFault(error);
      this.#hasHeader = this.#fileIndex === 0 && this.#options.startAt > 0;
      if (this.#hasHeader) this.#sequence.continueFile();
      this.#bytes = NOTHING;
      this.#bytesAt = 0;
      this.#tail = null;
      this.#isOurs = false;
      this.#longestEntry = 0;
      const size = this.#options.areSizesExact ? Math.min(file.size, opened.size) : opened.size;
      const startAt = this.#hasHeader ? this.#options.startAt : 0;
      this.#scan.open(this.#path, size - startAt);
      this.#slices.begin(opened, size, startAt);
    });
  }

  #onSlice(position: number, bytes: Uint8Array, isMore: boolean): void {
    if (this.#tail !== null) {
      this.#tail.add(bytes);
      if (!isMore) this.#onFileRead();
      else this.#slices.readRest(this.#tail.length === 0);
      return;
    }
    if (this.#bytes.length === 0) this.#bytesAt = position;
    this.#bytes = this.#slices.join(this.#bytes, bytes);
    // The next reads are in progress while these bytes are parsed.
    this.#slices.readAhead();
    if (!this.#parse(isMore)) return;
    if (!isMore) this.#onFileRead();
    else if (this.#tail === null && this.#scan.canStart()) this.#startScan();
  }

  /** Another thread reads on, starting with the first incomplete entry. */
  #startScan(): void {
    this.#slices.pause();
    this.#bytes = NOTHING;
    this.#scan.start(this.#bytesAt, this.#slices.size);
  }

  /** Delivers the complete entries. @returns false when a fault has ended the reading */
  #parse(isMore: boolean): boolean {
    const bytes = this.#bytes;
    const { size } = this.#slices;
    let at = 0;
    if (!this.#hasHeader) {
      if (!this.#readHeader(bytes)) return false;
      if (this.#tail !== null) return true;
      at = LOG_HEADER_BYTES;
    }
    const { onEntriesAhead } = this.#events;
    let aheadTo = onEntriesAhead === undefined ? bytes.length : at;
    for (;;) {
      const remaining = bytes.length - at;
      if (remaining < ENTRY_HEAD_BYTES) break;
      if (at >= aheadTo) aheadTo = this.#lookAhead(bytes, at);
      const length = getInt(bytes, at + 8);
      const isPlausible = length > 0 && length <= PAYLOAD_BYTES_MAX;
      const entryEnd = at + length + ENTRY_FRAME_BYTES;
      if (isPlausible && this.#bytesAt + entryEnd <= size) {
        if (entryEnd > bytes.length) break;
        if (isWholeEntry(bytes, at, length)) {
          if (!this.#deliver(bytes, at, length, this.#bytesAt + at, null)) return false;
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

  /** @returns false when a fault has ended the reading */
  #readHeader(bytes: Uint8Array): boolean {
    this.#hasHeader = true;
    const isCut = isCutLogHeader(bytes);
    if (isCut && this.#isLastFile) {
      // A file that a crash left before its header was on disk: checked as a whole.
      this.#tail = new LogTailCollector(0);
      this.#tail.add(bytes);
      return true;
    }
    const fault = isCut ? 'its header is missing or cut' : faultOfLogHeader(bytes);
    if (fault !== null) {
      const { last } = this.#sequence;
      const damage = { reason: fault, intact: null, last, durable: ZXID_NONE, isLastFile: false };
      this.#fault(describeDamage({ path: this.#path, position: 0 }, damage));
      return false;
    }
    const before = zxidBeforeLog(bytes);
    this.#isOurs = before !== null;
    const missing = this.#sequence.beginFile(this.entryFile, before);
    if (missing === null) return true;
    if (this.#isLastFile && bytes[LOG_HEADER_BYTES - 1] === 0) {
      // A header that is cut in its last bytes names a wrong zxid: this matters only if anything follows it.
      this.#missing = missing;
      this.#tail = new LogTailCollector(0);
      this.#tail.add(bytes);
      return true;
    }
    this.#faultOfSequence(0, missing);
    return false;
  }

  /** @returns where the examined entries end */
  #lookAhead(bytes: Uint8Array, start: number): number {
    let at = start;
    let count = 0;
    while (count < AHEAD_MAX && bytes.length - at >= ENTRY_HEAD_BYTES) {
      const length = getInt(bytes, at + 8);
      const end = at + length + ENTRY_FRAME_BYTES;
      if (length <= 0 || end > bytes.length) break;
      this.#ahead[count++] = at + ENTRY_HEAD_BYTES;
      at = end;
    }
    if (count > 0) this.#events.onEntriesAhead!(bytes, this.#ahead, count);
    return at;
  }

  /**
   * Delivers the entry at `at`, which is at `position` of the file.
   *
   * @returns false when a fault has ended the reading
   */
  #deliver(bytes: Uint8Array, at: number, length: number, position: number, known: KnownZnode | null): boolean {
    const zxid = entryZxidAt(bytes, at);
    if (!isZxid(zxid) || length < ENTRY_PAYLOAD_BYTES_MIN) return this.#faultOfUnknown(position);
    const entryBytes = length + ENTRY_FRAME_BYTES;
    if (entryBytes > this.#longestEntry) this.#longestEntry = entryBytes;
    if (this.#sequence.isKnown(zxid)) {
      this.#events.onKnownTxn?.(zxid, this.entryFile, position);
      return true;
    }
    const fault = this.#faultBehindTorn(zxid) ?? this.#sequence.take(zxid);
    if (fault !== null) {
      this.#faultOfSequence(position, fault);
      return false;
    }
    this.#torn = null;
    this.#entryAt = position;
    const payloadAt = at + ENTRY_HEAD_BYTES;
    this.#jute.reset(bytes, payloadAt, payloadAt + length);
    if (!this.#events.onTxn(this.#jute, known)) return this.#faultOfUnknown(position);
    return true;
  }

  /**
   * For the first entry after a torn file: a new epoch in a file of Apache does not show which txns the old one had.
   */
  #faultBehindTorn(zxid: Zxid): string | null {
    if (this.#torn === null || !this.#torn.hasMore || this.#isOurs) return null;
    if (epochOf(zxid) === epochOf(this.#sequence.last)) return null;
    return `epoch ${epochOf(zxid)} begins here, and nothing shows how many txns the one before had`;
  }

  #faultOfUnknown(position: number): false {
    const { last } = this.#sequence;
    const reason = 'an entry has the right checksum but is not a txn that this version knows';
    const damage = { reason, intact: null, last, durable: ZXID_NONE, isLastFile: false };
    this.#fault(describeDamage({ path: this.#path, position }, damage));
    return false;
  }

  /** No valid entry follows from `at` on; the bytes up to the end of the file are collected. */
  #enterTail(at: number): true {
    const tail = new LogTailCollector(this.#bytesAt + at);
    // The collector keeps these bytes; the buffers are not reused before the next file.
    tail.add(this.#bytes.subarray(at));
    this.#bytes = NOTHING;
    this.#tail = tail;
    return true;
  }

  #onFileRead(): void {
    this.#scan.close();
    const tail = this.#tail!;
    if (this.#missing !== null && tail.collected().length >= LOG_HEADER_BYTES) {
      this.#faultOfSequence(0, this.#missing);
      return;
    }
    for (const text of this.#sequence.endFile()) {
      this.#ports.trace.emit({ kind: 'warning', message: `${this.#path}: ${text}` });
    }
    this.#events.onLogFileRead(this.entryFile, tail.position >= LOG_HEADER_BYTES ? tail.position : 0);
    const read = {
      file: this.entryFile,
      isLastFile: this.#isLastFile,
      isOurs: this.#isOurs,
      tail: tail.collected(),
      last: this.#sequence.last,
      entryBytesMax: this.#longestEntry,
    };
    this.#end.settle(this.#slices.release(), read, (error, fault, torn) => {
      if (torn !== null) this.#torn = torn;
      if (error !== null) this.#diskFault(error);
      else if (fault !== null) this.#fault(fault);
      else this.#openNext();
    });
  }

  /** What was read is durable; this makes the names of the files durable too. */
  #makeNamesDurable(): void {
    const { files, logDirectory, isEnsemble, durable } = this.#options;
    const { last } = this.#sequence;
    if (durable !== null && durable > last) {
      this.#fault(describeLost(logDirectory, last, durable));
      return;
    }
    // If there are no files, a truncation may have removed them without a sync.
    if (files.length === 0 && !isEnsemble) {
      this.#events.onLogRead();
      return;
    }
    this.#ports.disk.syncDirectory(logDirectory, (error) => {
      if (error !== null) this.#diskFault(error);
      else this.#events.onLogRead();
    });
  }

  #faultOfSequence(position: number, reason: string): void {
    this.#fault(describeMissing({ path: this.#path, position }, reason, this.#torn?.text ?? null));
  }

  #fault(message: string): void {
    this.#scan.close();
    this.#slices.close();
    this.#events.onLogFault(new Error(message));
  }

  #diskFault(error: DiskError): void {
    this.#scan.close();
    this.#slices.close();
    this.#events.onLogFault(new Error(`the log cannot be read and synced: ${error.message}`, { cause: error }));
  }
}
