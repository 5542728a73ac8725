/**
 * The writer of the transaction log: group commit.
 *
 *     append ─► collecting batch ──(flush, at the end of a turn)──► one write, one sync ──► onSynced(Durable)
 *                     ▲                                                   │
 *                     └── appends meanwhile collect in the next batch ◄───┘
 *
 * These properties hold for every batch:
 *
 * 1. It is written only after the previous batch has been synced. So a crash damages at most one batch, the last one,
 *    and nothing in it was acknowledged; recovery relies on this (`log-damage.ts`).
 * 2. A batch is at most BATCH_BYTES_MAX and one entry long, for the same reason.
 * 3. It is in one file, whose header, size and name were made durable before.
 * 4. Each txn follows the one before it, and the header of each file names the zxid that the first one follows.
 * 5. `Durable` is created in `#onBatchSynced` only; after a failure never again, whatever succeeds later.
 */
import { JuteWriter, type Txn, type TxnHeader, ZXID_ZERO, type Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import { type Durable, onDisk } from '../base/durable.ts';
import type { DiskError, DiskFile, Ports } from '../base/ports.ts';
import { isNext } from '../zab/recent-log.ts';
import { logName } from './file-names.ts';
import { LogFiles } from './log-files.ts';
import {
  LOG_HEADER_BYTES,
  logHeader,
  paddedLogSize,
  payloadZxid,
  writeLogEntry,
  writeLogPayload,
} from './log-format.ts';

/** Size at which a batch accepts no further entry. */
export const BATCH_BYTES_MAX: number = 4 * 1024 * 1024;

export interface TxnLogOptions {
  readonly logDirectory: string;
  readonly preallocateBytes: number;
  readonly logBytesMax: number;
  readonly forceSync: boolean;
  /** A sync that takes longer is reported. */
  readonly syncWarningMs: number;
}

export interface TxnLogEvents {
  /** Everything up to here is durable. */
  onSynced(durable: Durable<Zxid>): void;
  /** Called once. Nothing more is written and nothing more becomes durable. */
  onLogFailed(error: Error): void;
  /** The answer to `close`. */
  onLogClosed(): void;
}

/** Entries that are written together. Reused: its buffer keeps its size. */
class Batch {
  readonly writer: JuteWriter = new JuteWriter(64 * 1024);
  firstZxid: Zxid = ZXID_ZERO;
  /** The last zxid before `firstZxid`. */
  zxidBefore: Zxid = ZXID_ZERO;
  lastZxid: Zxid = ZXID_ZERO;
  txns = 0;
  /** Offset of the last entry in the batch. */
  lastEntryAt = 0;
  /** True when the batch begins a new file, whatever room the current one has. */
  startsFile = false;

  clear(): void {
    this.writer.position = 0;
    this.txns = 0;
    this.startsFile = false;
  }
}

export class TxnLog {
  readonly #ports: Pick<Ports, 'disk' | 'clock' | 'trace'>;
  readonly #options: TxnLogOptions;
  readonly #events: TxnLogEvents;
  readonly #files: LogFiles;

  #collecting: Batch = new Batch();
  /** Full batches, oldest first; only a disk much slower than the clients leaves one here. */
  readonly #waiting: Batch[] = [];
  #inFlight: Batch | null = null;
  readonly #spare: Batch[] = [];
  /** The last txn of the history, appended here or before. */
  #lastZxid: Zxid = ZXID_ZERO;

  #file: DiskFile | null = null;
  /** Where the next batch is written. */
  #position = 0;
  /** Preallocated size of the file. */
  #size = 0;
  #writeStartedMs = 0;
  #isFailed = false;
  #isClosing = false;
  #isClosed = false;

  /** @param files is updated with new files and their entries */
  constructor(
    ports: Pick<Ports, 'disk' | 'clock' | 'trace'>,
    options: TxnLogOptions,
    events: TxnLogEvents,
    files: LogFiles = new LogFiles(),
  ) {
    this.#ports = ports;
    this.#options = options;
    this.#events = events;
    this.#files = files;
  }

  /** The history ends with `zxid`; only before the first append. */
  follow(zxid: Zxid): void {
    this.#lastZxid = zxid;
  }

  /** True once `onLogClosed` has been called. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** True when everything that was appended is durable. */
  get isIdle(): boolean {
    return this.#inFlight === null && this.#waiting.length === 0 && this.#collecting.txns === 0;
  }

  /** Encodes a txn into the collecting batch. Zxids are ascending. @returns size of its entry in bytes */
  append(header: TxnHeader, txn: Txn, treeDigest: bigint | null): number {
    if (this.#isFailed) return 0;
    const batch = this.#batchFor(header.zxid);
    writeLogEntry(batch.writer, header, txn, treeDigest);
    return batch.writer.position - batch.lastEntryAt;
  }

  /** The same for an encoded txn: header, record and digest. The bytes are copied. */
  appendPayload(zxid: Zxid, payload: Uint8Array): number {
    assert(payloadZxid(payload) === zxid, 'a payload begins with the header of its txn');
    if (this.#isFailed) return 0;
    const batch = this.#batchFor(zxid);
    writeLogPayload(batch.writer, payload);
    return batch.writer.position - batch.lastEntryAt;
  }

  /** The collecting batch, with a new entry counted that begins at its current end. */
  #batchFor(zxid: Zxid): Batch {
    assert(!this.#isClosing, 'nothing is appended to a log that is closing');
    assert(isNext(this.#lastZxid, zxid), 'no txn is missing before one that is logged');
    if (this.#collecting.writer.position >= BATCH_BYTES_MAX) this.#setAside();
    const batch = this.#collecting;
    if (batch.txns === 0) {
      batch.firstZxid = zxid;
      batch.zxidBefore = this.#lastZxid;
    }
    this.#lastZxid = zxid;
    batch.lastEntryAt = batch.writer.position;
    batch.lastZxid = zxid;
    batch.txns++;
    return batch;
  }

  /** Writes the collected batch, unless another one is in flight. */
  flush(): void {
    if (this.#inFlight !== null || this.#isFailed) return;
    const batch = this.#nextBatch();
    if (batch === null) return;
    this.#inFlight = batch;
    if (this.#file === null || batch.startsFile) this.#startFile(batch);
    else {
      this.#grow(this.#file, batch);
      this.#write(this.#file, batch);
    }
  }

  /** The next txn appended begins a new file. */
  roll(): void {
    if (this.#collecting.txns > 0) this.#setAside();
    this.#collecting.startsFile = true;
  }

  /** Writes and syncs the rest, then closes; `onLogClosed` follows. */
  close(): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    this.#maybeFinishClosing();
  }

  #maybeFinishClosing(): void {
    this.flush();
    if (this.#inFlight !== null && !this.#isFailed) return;
    const file = this.#file;
    this.#file = null;
    const finish = (): void => {
      file?.close();
      this.#isClosed = true;
      this.#events.onLogClosed();
    };
    // The last sync has nothing new to make durable; its completion is the event for the answer.
    if (file === null) this.#ports.disk.syncDirectory(this.#options.logDirectory, finish);
    else file.sync(finish);
  }

  #nextBatch(): Batch | null {
    const full = this.#waiting.shift();
    if (full !== undefined) return full;
    if (this.#collecting.txns === 0) return null;
    const batch = this.#collecting;
    this.#collecting = this.#spare.pop() ?? new Batch();
    return batch;
  }

  #setAside(): void {
    this.#waiting.push(this.#collecting);
    this.#collecting = this.#spare.pop() ?? new Batch();
  }

  /** A file's header, size and name are durable before the first entry is written. */
  #startFile(batch: Batch): void {
    this.#file?.close();
    this.#file = null;
    const { disk, trace } = this.#ports;
    const { logDirectory, forceSync } = this.#options;
    const path = `${logDirectory}/${logName(batch.firstZxid)}`;
    disk.create(
      path,
      (error, file) => {
        if (error !== null) return this.#fail(`create the log file ${path}`, error);
        this.#file = file;
        this.#files.onStarted(batch.firstZxid, LOG_HEADER_BYTES);
        this.#position = LOG_HEADER_BYTES;
        this.#size = LOG_HEADER_BYTES;
        this.#grow(file, batch);
        const isDone = (attempted: string) => (failure: DiskError | null) => {
          if (failure !== null) this.#fail(`${attempted} ${path}`, failure);
        };
        file.write(0, logHeader(batch.zxidBefore), isDone('write the header of'));
        if (!forceSync) {
          trace.emit({ kind: 'log-file-started', file: path });
          this.#write(file, batch);
          return;
        }
        file.sync((failure) => {
          if (failure !== null) return this.#fail(`sync the header of ${path}`, failure);
          if (this.#isFailed) return;
          disk.syncDirectory(logDirectory, (directoryFailure) => {
            if (directoryFailure !== null) return this.#fail(`sync the directory ${logDirectory}`, directoryFailure);
            if (this.#isFailed) return;
            trace.emit({ kind: 'log-file-started', file: path });
            this.#write(file, batch);
          });
        });
      },
      forceSync,
    );
  }

  #write(file: DiskFile, batch: Batch): void {
    const position = this.#position;
    const length = batch.writer.position;
    this.#writeStartedMs = this.#ports.clock.monotonicMs();
    this.#position = position + length;
    file.write(position, batch.writer.bytes.subarray(0, length), (error) => {
      if (error !== null) return this.#fail(`write ${length} bytes at ${position} of ${file.path}`, error);
      if (!this.#options.forceSync) this.#onBatchSynced(batch, length);
    });
    if (!this.#options.forceSync) return;
    file.sync((error) => {
      if (error !== null) return this.#fail(`sync ${file.path} after ${length} bytes at ${position}`, error);
      this.#onBatchSynced(batch, length);
    });
  }

  /** Grows the file as Apache does before each of the entries. */
  #grow(file: DiskFile, batch: Batch): void {
    const { preallocateBytes } = this.#options;
    const firstEntryAt = this.#position;
    const lastEntryAt = firstEntryAt + batch.lastEntryAt;
    let size = paddedLogSize(firstEntryAt, this.#size, preallocateBytes);
    while (lastEntryAt > firstEntryAt) {
      const larger = paddedLogSize(lastEntryAt, size, preallocateBytes);
      if (larger === size) break;
      size = larger;
    }
    if (size === this.#size) return;
    this.#size = size;
    // An entry longer than the margin may already have made the file larger than that.
    if (size <= file.size) return;
    file.preallocate(size, (error) => {
      if (error !== null) this.#fail(`grow to ${size} bytes ${file.path}`, error);
    });
  }

  /**
   * The only place where the log's durability is created: the disk has reported the sync of a batch, all earlier
   * batches were synced before, and nothing has failed.
   */
  #onBatchSynced(batch: Batch, bytes: number): void {
    if (this.#isFailed) return;
    assert(this.#inFlight === batch, 'one batch is in flight at a time');
    const { clock, trace } = this.#ports;
    const syncMs = clock.monotonicMs() - this.#writeStartedMs;
    const { lastZxid, txns } = batch;
    this.#inFlight = null;
    this.#files.onWritten(this.#position, batch.firstZxid, this.#position - bytes);
    batch.clear();
    // The memory of an exceptionally large batch is released.
    if (batch.writer.bytes.length <= 2 * BATCH_BYTES_MAX && this.#spare.length < 2) this.#spare.push(batch);
    if (this.#options.logBytesMax > 0 && this.#position > this.#options.logBytesMax) this.#rollBeforeNextBatch();
    trace.emit({ kind: 'log-synced', txns, bytes, syncMs });
    if (syncMs > this.#options.syncWarningMs) {
      trace.emit({
        kind: 'warning',
        message:
          `writing and syncing ${bytes} bytes of ${this.#file?.path} took ${Math.round(syncMs)} ms: clients wait that ` +
          'long for their writes; is the disk of the log shared with something busy?',
      });
    }
    this.#events.onSynced(onDisk(lastZxid));
    if (this.#isClosing) this.#maybeFinishClosing();
  }

  #rollBeforeNextBatch(): void {
    (this.#waiting[0] ?? this.#collecting).startsFile = true;
  }

  #fail(attempted: string, cause: DiskError): void {
    if (this.#isFailed) return;
    this.#isFailed = true;
    if (this.#isClosing) this.#maybeFinishClosing();
    this.#file?.close();
    this.#file = null;
    this.#events.onLogFailed(
      new Error(`cannot ${attempted}: ${cause.code}. No further write is acknowledged. ${adviceFor(cause.code)}`, {
        cause,
      }),
    );
  }
}

function adviceFor(code: string): string {
  const restart = 'then start the server again: every acknowledged write is in the log';
  if (code === 'ENOSPC' || code === 'EDQUOT') return `Make room on the file system, ${restart}.`;
  if (code === 'EIO') return `The device reports errors: look at the kernel's log and replace it, ${restart}.`;
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') return `Make the directory writable, ${restart}.`;
  return `Look at the file system, ${restart}.`;
}
