/**
 * Files that another thread reads and scans ahead of the core.
 *
 *     open ─► canStart … ─► start ─► onChunk … ─► onScanEnd, or close
 *
 * A scan only reports whole, plain records and does not decide what is damaged: it ends at anything else, and the core
 * reads on from there as it does without a scan. So a scan may end at any record, for any reason: a record that is too
 * long, a thread that dies.
 *
 * Requirements for a host:
 *
 * 1. The chunks follow each other without a gap, from where `start` said, and have whole records only.
 * 2. Rows and checksum are those that the scanner of this kind of file computes (`record-scanner.ts`).
 * 3. It holds at most `SCAN_BYTES_MAX` of memory, however slowly chunks are released.
 */

/** What is scanned of a file: the entries of a log or the znodes of a snapshot. */
export type ScanKind = 'log' | 'snapshot';

/** Consecutive records. */
export interface ScannedChunk {
  /** Offset of bytes[0] in the file. */
  readonly position: number;
  /** [0, end) are whole records. */
  readonly bytes: Uint8Array;
  readonly end: number;
  /** `ROW_INTS` ints for each record. */
  readonly rows: Int32Array;
  /** Number of records. */
  readonly count: number;
  /** Snapshots only: Adler-32 of all bytes up to `end`, continued from where the scan began. */
  readonly checksum: number;
  /**
   * Zeroed memory that the tree may take for its znodes: page faults and clearing cost the other thread, not the core.
   */
  readonly memory: ArrayBuffer | null;
}

export interface FileScanEvents {
  /** The chunk must be released once its records are applied. */
  onChunk(chunk: ScannedChunk): void;
  /** All chunks have been delivered. */
  onScanEnd(): void;
}

export interface FileScan {
  /**
   * Called after each slice that the core has read itself; most files have only a few. True once a started scan would
   * soon deliver chunks; it may always be false.
   */
  canStart(): boolean;
  /**
   * @param from offset at which a record begins
   * @param end end of the file, as far as it is to be read
   * @param checksum snapshots only: Adler-32 of the file up to `from`
   */
  start(from: number, end: number, checksum: number): void;
  /** The chunk is no longer used. @param isMemoryTaken the tree now owns its memory */
  release(chunk: ScannedChunk, isMemoryTaken: boolean): void;
  /** No more chunks are needed. */
  close(): void;
}

export interface FileScans {
  /**
   * Prepares to scan a file; null where a scan would not pay off.
   *
   * @param bytes how many are still to be read
   */
  open(path: string, kind: ScanKind, bytes: number, events: FileScanEvents): FileScan | null;
  /** Everything has been read: stops the thread and releases its memory. */
  stop(): void;
}

/** Size of `ScannedChunk.memory`. */
export const SCAN_MEMORY_BYTES: number = 1024 * 1024;

export const SCAN_BYTES_MAX: number = 32 * 1024 * 1024;

/** Ints per row. */
export const ROW_INTS = 5;
/** Where the record begins in its chunk. */
export const ROW_START = 0;
export const ROW_END = 1;
/** 1 for a record whose hash and digest follow, else 0. */
export const ROW_IS_PLAIN = 2;
/** Hash of the path. */
export const ROW_HASH = 3;
/** Digest of the znode, signed. */
export const ROW_DIGEST = 4;
