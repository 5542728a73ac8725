/**
 * Reads one log file from its beginning or a place in it, with memory for a slice and the longest entry.
 *
 * It stops where no valid entry follows; `classifyEnd` classifies what is there, by the rule of a start (docs/storage.md,
 * "Damage in the log").
 */
import {
  classifyLogTail,
  ENTRY_FRAME_BYTES,
  ENTRY_HEAD_BYTES,
  ENTRY_PAYLOAD_BYTES_MIN,
  entryZxidAt,
  faultOfLogHeader,
  isCutLogHeader,
  isWholeEntry,
  LOG_HEADER_BYTES,
  LogTailCollector,
  type LogTailState,
  PAYLOAD_BYTES_MAX,
  zxidBeforeLog,
} from '@meerkat/core/files';
import { getInt, isZxid, JuteReader, readTxnEntry, type TxnEntry, type Zxid } from '@meerkat/protocol';
import type { OpenFile } from './archive-files.ts';

/** An entry whose checksum is right. Its bytes may be looked at until the receiver returns. */
export interface LogEntry {
  readonly zxid: Zxid;
  /** Where it begins in the file, and where the next one does. */
  readonly position: number;
  readonly end: number;
  /** Checksum, length, payload and end, as they stand in the file. */
  readonly bytes: Uint8Array;
  /** Wall-clock milliseconds of the server that decided. */
  readonly timeMs: number;
  /** Puts a reader in front of the payload. */
  place(reader: JuteReader): void;
  /** null when the payload is no txn that this version knows. */
  decode(): TxnEntry | null;
}

export interface LogScanEvents {
  /** @param before the last zxid of the history before the file, if the header says so: Apache's do not */
  onHeader?(before: Zxid | null): void;
  /** @returns false: stop before this entry */
  onEntry(entry: LogEntry): boolean;
  /** After each slice; what it returns is waited for. */
  onSlice?(): Promise<void> | undefined;
}

export interface LogScanned {
  /** Behind the last entry that was taken; 0 when there is no header. */
  readonly position: number;
  readonly entries: number;
  /** What is wrong with the header, or null. */
  readonly headerFault: string | null;
  /** True when the receiver has stopped it: there may be more. */
  readonly isStopped: boolean;
}

const SLICE_BYTES = 256 * 1024;
const TAIL_SLICE_BYTES = 1024 * 1024;

/** @param startAt where an entry begins; 0: at the header */
export async function scanLog(
  file: OpenFile,
  events: LogScanEvents,
  startAt = 0,
  signal?: AbortSignal,
): Promise<LogScanned> {
  let position = startAt;
  if (startAt === 0) {
    const header = await file.read(0, LOG_HEADER_BYTES);
    const isCut = header.length < LOG_HEADER_BYTES || isCutLogHeader(header);
    const headerFault = isCut ? 'its header is missing or cut' : faultOfLogHeader(header);
    if (headerFault !== null) return { position: 0, entries: 0, headerFault, isStopped: false };
    events.onHeader?.(zxidBeforeLog(header));
    position = LOG_HEADER_BYTES;
  }
  let entries = 0;
  let rest: Uint8Array = new Uint8Array(0);
  let need = 0;
  for (;;) {
    signal?.throwIfAborted();
    const wanted = Math.max(SLICE_BYTES, need - rest.length);
    const read = await file.read(position + rest.length, wanted);
    const isLast = read.length < wanted;
    const bytes = rest.length === 0 ? read : Buffer.concat([rest, read]);
    let at = 0;
    let isStopped = false;
    need = 0;
    while (bytes.length - at >= ENTRY_HEAD_BYTES) {
      const length = getInt(bytes, at + 8);
      if (length < ENTRY_PAYLOAD_BYTES_MIN || length > PAYLOAD_BYTES_MAX) break;
      const end = at + ENTRY_FRAME_BYTES + length;
      if (end > bytes.length) {
        need = end - at;
        break;
      }
      if (!isWholeEntry(bytes, at, length)) break;
      const zxid = entryZxidAt(bytes, at);
      if (!isZxid(zxid)) break;
      if (!events.onEntry(new ScannedEntry(bytes, at, end, zxid, position))) {
        isStopped = true;
        break;
      }
      entries++;
      at = end;
    }
    await events.onSlice?.();
    rest = bytes.subarray(at);
    position += at;
    const isOver = need === 0 && bytes.length - at >= ENTRY_HEAD_BYTES;
    if (isStopped || isOver || isLast) return { position, entries, headerFault: null, isStopped };
  }
}

class ScannedEntry implements LogEntry {
  readonly zxid: Zxid;
  readonly position: number;
  readonly end: number;
  readonly #bytes: Uint8Array;
  readonly #at: number;
  readonly #length: number;

  constructor(bytes: Uint8Array, at: number, end: number, zxid: Zxid, base: number) {
    this.zxid = zxid;
    this.position = base + at;
    this.end = base + end;
    this.#bytes = bytes;
    this.#at = at;
    this.#length = end - at;
  }

  get bytes(): Uint8Array {
    return this.#bytes.subarray(this.#at, this.#at + this.#length);
  }

  get timeMs(): number {
    const at = this.#at + ENTRY_HEAD_BYTES + TIME_OFFSET;
    return getInt(this.#bytes, at) * 0x100000000 + (getInt(this.#bytes, at + 4) >>> 0);
  }

  place(reader: JuteReader): void {
    reader.reset(this.#bytes, this.#at + ENTRY_HEAD_BYTES, this.#at + this.#length - 1);
  }

  decode(): TxnEntry | null {
    const reader = new JuteReader(undefined, PAYLOAD_BYTES_MAX);
    this.place(reader);
    return readTxnEntry(reader);
  }
}

/** Of the time in a payload, behind session id, cxid and zxid. */
const TIME_OFFSET = 20;

/**
 * What stands behind the last valid entry: the end, what a crash has torn, or damage.
 *
 * @param position behind the last valid entry
 * @param last zxid of that entry
 */
export async function classifyEnd(
  file: OpenFile,
  position: number,
  last: Zxid,
  signal?: AbortSignal,
): Promise<{ readonly judgement: LogTailState; readonly bytes: number }> {
  const tail = new LogTailCollector(position);
  for (let at = position; ; ) {
    signal?.throwIfAborted();
    const bytes = await file.read(at, TAIL_SLICE_BYTES);
    tail.add(bytes);
    at += bytes.length;
    if (bytes.length < TAIL_SLICE_BYTES) break;
  }
  const collected = tail.collected();
  return { judgement: classifyLogTail(collected, { last, writer: 'other' }), bytes: collected.length };
}
