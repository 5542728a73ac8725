/** The entries of a log file that another thread scans ahead: each is whole, and more is known about a plain create. */
import {
  type FileScans,
  ROW_DIGEST,
  ROW_END,
  ROW_HASH,
  ROW_INTS,
  ROW_IS_PLAIN,
  ROW_START,
  type ScannedChunk,
} from '../base/file-scans.ts';
import type { KnownZnode } from '../tree/known-znode.ts';
import { ENTRY_FRAME_BYTES } from './log-format.ts';
import { ScanAhead } from './scan-ahead.ts';

export interface LogScanEvents {
  /**
   * @param at offset of the entry in `bytes`
   * @param length of its payload
   * @param position of the entry in its file
   * @param known for a plain create
   * @returns false to stop the scan
   */
  onScannedEntry(bytes: Uint8Array, at: number, length: number, position: number, known: KnownZnode | null): boolean;
  /** The entries of rows [row, rowsEnd) follow next. */
  onScannedAhead(rows: Int32Array, row: number, rowsEnd: number): void;
  /** Memory that the tree may take. @returns true when it has taken it */
  onMemory(memory: ArrayBuffer): boolean;
  /** The caller must read on from `position`. */
  onScanEnd(position: number): void;
}

/** Entries that are prefetched together, before the first of them is checked. */
export const AHEAD_MAX = 16;

export class LogScan {
  readonly #events: LogScanEvents;
  readonly #scan: ScanAhead;
  readonly #known: KnownZnode = { hash: 0, digest: 0 };

  constructor(scans: FileScans | null | undefined, events: LogScanEvents) {
    this.#events = events;
    this.#scan = new ScanAhead(scans, 'log', {
      onScanned: (chunk) => this.#onScanned(chunk),
      onScanEnd: (position) => events.onScanEnd(position),
    });
  }

  /** @param bytes how many are still to be read */
  open(path: string, bytes: number): void {
    this.#scan.open(path, bytes);
  }

  /** Called after each slice that was read; see `FileScan`. */
  canStart(): boolean {
    return this.#scan.canStart();
  }

  start(from: number, end: number): void {
    this.#scan.start(from, end, 0);
  }

  /** No more entries are needed. */
  close(): void {
    this.#scan.close();
  }

  #onScanned({ position, bytes, rows, count, memory }: ScannedChunk): boolean {
    const events = this.#events;
    const isMemoryTaken = memory !== null && events.onMemory(memory);
    const known = this.#known;
    const rowsEnd = count * ROW_INTS;
    let aheadTo = 0;
    for (let row = 0; row < rowsEnd; row += ROW_INTS) {
      if (row === aheadTo) {
        aheadTo = Math.min(row + AHEAD_MAX * ROW_INTS, rowsEnd);
        events.onScannedAhead(rows, row, aheadTo);
      }
      const start = rows[row + ROW_START]!;
      const length = rows[row + ROW_END]! - start - ENTRY_FRAME_BYTES;
      known.hash = rows[row + ROW_HASH]!;
      known.digest = rows[row + ROW_DIGEST]! >>> 0;
      const isPlain = rows[row + ROW_IS_PLAIN] === 1;
      if (!events.onScannedEntry(bytes, start, length, position + start, isPlain ? known : null)) break;
    }
    return isMemoryTaken;
  }
}
