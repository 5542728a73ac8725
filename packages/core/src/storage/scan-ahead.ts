/**
 * A file that another thread may scan ahead of this thread's reads.
 *
 *     open ─► canStart … ─► start ─► onScanned … ─► onScanEnd ─┬─► canStart …    after a record that is too long
 *                                                             └─► close
 */
import { assert } from '../base/assert.ts';
import type { FileScan, FileScans, ScanKind, ScannedChunk } from '../base/file-scans.ts';

export interface ScanAheadEvents {
  /** A scanned chunk, to be processed as a whole. @returns true when the tree has taken the memory that came with it */
  onScanned(chunk: ScannedChunk): boolean;
  /** The caller must read on from `position`. */
  onScanEnd(position: number): void;
}

export class ScanAhead {
  readonly #scans: FileScans | null;
  readonly #kind: ScanKind;
  readonly #events: ScanAheadEvents;
  /** null without a scan. */
  #scan: FileScan | null = null;
  #path = '';
  /** Where the scan began, where the next chunk begins, and the end of the file. */
  #from = 0;
  #at = 0;
  #end = 0;

  /** @param scans null or absent: no scans */
  constructor(scans: FileScans | null | undefined, kind: ScanKind, events: ScanAheadEvents) {
    this.#scans = scans ?? null;
    this.#kind = kind;
    this.#events = events;
  }

  /** @param bytes how many are still to be read */
  open(path: string, bytes: number): void {
    this.#path = path;
    if (this.#scans === null) return;
    const scan: FileScan | null = this.#scans.open(path, this.#kind, bytes, {
      onChunk: (chunk) => {
        if (this.#scan !== null && this.#scan === scan) this.#onChunk(scan, chunk);
      },
      onScanEnd: () => {
        if (this.#scan !== null && this.#scan === scan) this.#onEnd();
      },
    });
    this.#scan = scan;
  }

  /** Called after each slice that was read; see `FileScan`. */
  canStart(): boolean {
    return this.#scan?.canStart() === true;
  }

  /** See `FileScan`. */
  start(from: number, end: number, checksum: number): void {
    this.#from = from;
    this.#at = from;
    this.#end = end;
    this.#scan!.start(from, end, checksum);
  }

  /** No more chunks are needed. */
  close(): void {
    this.#scan?.close();
    this.#scan = null;
  }

  #onChunk(scan: FileScan, chunk: ScannedChunk): void {
    assert(chunk.position === this.#at, 'chunks follow each other');
    const isMemoryTaken = this.#events.onScanned(chunk);
    this.#at += chunk.end;
    if (this.#scan === scan) scan.release(chunk, isMemoryTaken);
  }

  #onEnd(): void {
    this.#scan = null;
    // It may have ended at a record that is too long for it: another scan can start after that.
    if (this.#at > this.#from) this.open(this.#path, this.#end - this.#at);
    this.#events.onScanEnd(this.#at);
  }
}
