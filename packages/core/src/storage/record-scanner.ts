/**
 * What another thread computes ahead of the core from the bytes of a log or a snapshot: where records begin, that they
 * are whole, and, for the most frequent kind, the values that are most expensive to compute.
 *
 *     row := start, end, isPlain 0 or 1, hash of the path, digest of the znode      (base/file-scans.ts)
 */
import { getInt, PlainCreate } from '@meerkat/protocol';
import { ROW_DIGEST, ROW_END, ROW_HASH, ROW_INTS, ROW_IS_PLAIN, ROW_START, type ScanKind } from '../base/file-scans.ts';
import { crc32 } from '../tree/crc32.ts';
import { digestOfCreated, isDigestedBytes } from '../tree/digest.ts';
import { hashOfBytes, isAscii } from '../tree/path-index.ts';
import { areZxids, PersistedOffset } from '../tree/persisted-stat.ts';
import { SnapshotRecord } from '../tree/snapshot-record.ts';
import { adler32 } from './adler32.ts';
import { ENTRY_FRAME_BYTES, ENTRY_HEAD_BYTES, isWholeEntry, PAYLOAD_BYTES_MAX } from './log-format.ts';

export interface RecordScanner {
  /** Records found by the last call. */
  readonly count: number;
  /** True when a partial record, or no record, follows: the core reads the rest of the file. */
  readonly isOver: boolean;
  /** See `ScannedChunk`. */
  readonly checksum: number;
  /**
   * Finds whole records from bytes[0] on and fills a row for each.
   *
   * @returns where the last one ends; the rest has to be passed again, together with what follows it
   */
  scan(bytes: Uint8Array, end: number, rows: Int32Array): number;
}

/** @param checksum see `FileScan.start` */
export function makeRecordScanner(kind: ScanKind, checksum: number): RecordScanner {
  return kind === 'log' ? new LogScanner() : new SnapshotScanner(checksum);
}

class LogScanner implements RecordScanner {
  count = 0;
  isOver = false;
  readonly checksum: number = 0;
  readonly #create: PlainCreate = new PlainCreate();

  scan(bytes: Uint8Array, end: number, rows: Int32Array): number {
    let at = 0;
    let count = 0;
    const countMax = Math.floor(rows.length / ROW_INTS);
    while (count < countMax && end - at >= ENTRY_HEAD_BYTES) {
      const length = getInt(bytes, at + 8);
      if (length <= 0 || length > PAYLOAD_BYTES_MAX) {
        this.isOver = true;
        break;
      }
      const entryEnd = at + length + ENTRY_FRAME_BYTES;
      if (entryEnd > end) break;
      if (!isWholeEntry(bytes, at, length)) {
        this.isOver = true;
        break;
      }
      this.#fill(rows, count++ * ROW_INTS, bytes, at, entryEnd);
      at = entryEnd;
    }
    this.count = count;
    return at;
  }

  #fill(rows: Int32Array, row: number, bytes: Uint8Array, start: number, end: number): void {
    const create = this.#create;
    rows[row + ROW_START] = start;
    rows[row + ROW_END] = end;
    const isCreate = create.read(bytes, start + ENTRY_HEAD_BYTES, end - 1);
    const { pathStart, pathEnd } = create;
    if (!isCreate || !isDigestedBytes(bytes, pathStart, pathEnd)) {
      rows[row + ROW_IS_PLAIN] = 0;
      return;
    }
    const crc = crc32(crc32(0, bytes, pathStart, pathEnd), bytes, pathEnd + 4, create.dataEnd);
    rows[row + ROW_IS_PLAIN] = 1;
    rows[row + ROW_HASH] = hashOfBytes(bytes, pathStart, pathEnd);
    rows[row + ROW_DIGEST] = digestOfCreated(crc, create.zxid, create.time);
  }
}

/** Scans the znodes of a snapshot. */
class SnapshotScanner implements RecordScanner {
  count = 0;
  isOver = false;
  checksum: number;
  readonly #record: SnapshotRecord = new SnapshotRecord();

  constructor(checksum: number) {
    this.checksum = checksum;
  }

  scan(bytes: Uint8Array, end: number, rows: Int32Array): number {
    const record = this.#record;
    let at = 0;
    let count = 0;
    const countMax = Math.floor(rows.length / ROW_INTS);
    while (count < countMax) {
      const found = record.read(bytes, at, end);
      this.isOver = found === 'last' || found === 'broken';
      if (found !== 'whole') break;
      fillZnode(rows, count++ * ROW_INTS, at, record);
      at = record.end;
    }
    this.count = count;
    this.checksum = adler32(this.checksum, bytes, 0, at);
    return at;
  }
}

function fillZnode(rows: Int32Array, row: number, start: number, record: SnapshotRecord): void {
  const { bytes, pathStart, pathEnd, dataEnd, persisted: stat, end } = record;
  rows[row + ROW_START] = start;
  rows[row + ROW_END] = end;
  rows[row + ROW_IS_PLAIN] = 0;
  if (pathEnd - pathStart < 2 || !isAscii(bytes, pathStart, pathEnd) || !isDigestedBytes(bytes, pathStart, pathEnd))
    return;
  const owner = stat + PersistedOffset.ephemeralOwner;
  if (getInt(bytes, owner) !== 0 || getInt(bytes, owner + 4) !== 0 || !areZxids(bytes, stat)) return;
  rows[row + ROW_IS_PLAIN] = 1;
  rows[row + ROW_HASH] = hashOfBytes(bytes, pathStart, pathEnd);
  // The digest has the pzxid before the times; the fields after them are in the same order.
  let crc = crc32(crc32(0, bytes, pathStart, pathEnd), bytes, pathEnd + 4, dataEnd);
  crc = crc32(crc, bytes, stat, stat + PersistedOffset.ctime);
  crc = crc32(crc, bytes, stat + PersistedOffset.pzxid, end);
  rows[row + ROW_DIGEST] = crc32(crc, bytes, stat + PersistedOffset.ctime, stat + PersistedOffset.pzxid);
}
