/**
 * A file that another thread may scan ahead of this one's reads.
 *
 *     open ─► canStart … ─► start ─► onScanned … ─► onScanEnd ─┬─► canStart …    behind a record that was too long for it
 *                                                             └─► close
 */
import { assert } from '../base/assert.ts';
import type { FileScan, FileScans, ScanKind, ScannedChunk } from '../base/file-scans.ts';

export interface ScanAheadEvents {
  /** What was scanned, to be used as a whole. @returns true when the memory that came with it is the tree's */
  onScanned(chunk: ScannedChunk): boolean;
  /** What begins at `position` is to be read. */
  onScanEnd(position: number): void;
}

export class ScanAhead {
  readonly #scans: FileScans | null;
  readonly #kind: ScanKind;
  readonly #events: ScanAheadEvents;
  /** null when there is none. */
  #scan: FileScan | null = null;
  #path = '';
  /** Where it began, where the next chunk begins, and the end of the file. */
  #from = 0;
  #at = 0;
  #end = 0;

  /** @param scans null or absent: nothing is scanned */
  constructor(scans: FileScans | null | undefined, kind: ScanKind, events: ScanAheadEvents) {
    this.#scans = scans ?? null;
    this.#kind = kind;
    this.#events = events;
  }

  /** @param bytes that are still to be read of it */
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

  /** Asked behind each slice that was read; see `FileScan`. */
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

  /** Nothing follows. */
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
    // Where it ended there may be a record that was too long for it: behind that there is another one.
    if (this.#at > this.#from) this.open(this.#path, this.#end - this.#at);
    this.#events.onScanEnd(this.#at);
  }
}
