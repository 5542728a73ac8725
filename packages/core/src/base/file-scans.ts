/**
 * Files that another thread reads and looks through ahead of the core.
 *
 *     open ─► canStart … ─► start ─► onChunk … ─► onScanEnd, or close
 *
 * A scan vouches for whole records and judges nothing: where it meets anything else it ends, and the core reads on from there as
 * it would have read without one. So it may end at any record, for any reason: a record that is too long, a thread that dies.
 *
 * What a host has to keep:
 *
 * 1. The chunks follow each other without a gap, from where `start` said, and have whole records only.
 * 2. Rows and checksum are those that the scanner of this kind of file makes of these bytes (`record-scanner.ts`).
 * 3. It holds at most `SCAN_BYTES_MAX` of memory, however slowly chunks are released.
 */

/** What of a file is scanned: the entries of a log or the znodes of a snapshot. */
export type ScanKind = 'log' | 'snapshot';

/** Records in a row. */
export interface ScannedChunk {
  /** Where bytes[0] stands in the file. */
  readonly position: number;
  /** Of these, [0, end) are whole records. */
  readonly bytes: Uint8Array;
  readonly end: number;
  /** `ROW_INTS` ints for each record. */
  readonly rows: Int32Array;
  /** How many records there are. */
  readonly count: number;
  /** Adler-32 of all bytes up to `end`, continued from where the scan began; of a snapshot. */
  readonly checksum: number;
  /** Zeros that the tree may take for its znodes: the kernel has cleared them in the time of the other thread. */
  readonly memory: ArrayBuffer | null;
}

export interface FileScanEvents {
  /** To be released, once what it has is applied. */
  onChunk(chunk: ScannedChunk): void;
  /** All chunks have been delivered. */
  onScanEnd(): void;
}

export interface FileScan {
  /**
   * Asked behind each slice that the core has read itself: most files have not many of them, whatever their size. True once chunks
   * would come soon after a start; it need never be.
   */
  canStart(): boolean;
  /**
   * @param from where a record begins
   * @param end of the file, as far as it is to be read
   * @param checksum Adler-32 of the file up to `from`; of a snapshot
   */
  start(from: number, end: number, checksum: number): void;
  /** The chunk is not looked at any more. @param isMemoryTaken its memory is the tree's now */
  release(chunk: ScannedChunk, isMemoryTaken: boolean): void;
  /** Nothing follows. */
  close(): void;
}

export interface FileScans {
  /**
   * Prepares to scan a file; null where it is not worth it.
   *
   * @param bytes that are still to be read of it
   */
  open(path: string, kind: ScanKind, bytes: number, events: FileScanEvents): FileScan | null;
  /** Everything has been read: the thread is stopped and its memory released. */
  stop(): void;
}

/** Of `ScannedChunk`. */
export const SCAN_MEMORY_BYTES: number = 1024 * 1024;

export const SCAN_BYTES_MAX: number = 32 * 1024 * 1024;

/** Ints of a row. */
export const ROW_INTS = 5;
/** Where the record begins in its chunk. */
export const ROW_START = 0;
export const ROW_END = 1;
/** 1 of a record whose hash and digest follow, 0 of any other. */
export const ROW_IS_PLAIN = 2;
/** Of the path. */
export const ROW_HASH = 3;
/** Of the znode, signed. */
export const ROW_DIGEST = 4;
