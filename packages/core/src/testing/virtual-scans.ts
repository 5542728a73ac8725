import { ROW_INTS } from '../base/file-scans.ts';
import type { DiskFile, FileScan, FileScanEvents, FileScans, MemoryDisk, ScanKind, ScannedChunk } from '../index.ts';
import { makeRecordScanner, type RecordScanner } from '../storage/record-scanner.ts';

export interface VirtualScansOptions {
  /** Limits of a chunk. */
  readonly chunkBytes: number;
  readonly chunkRecordsMax: number;
  /** The other thread dies after this many chunks. */
  readonly chunksMax: number;
}

/** Scans without a thread: each chunk is delivered with a completion of the disk. */
export class VirtualScans implements FileScans {
  /** Chunks and records that were delivered. */
  chunks = 0;
  records = 0;
  stops = 0;
  readonly options: VirtualScansOptions;
  readonly #disk: MemoryDisk;

  constructor(disk: MemoryDisk, options: Partial<VirtualScansOptions> = {}) {
    this.#disk = disk;
    this.options = { chunkBytes: 8192, chunkRecordsMax: 50, chunksMax: Number.POSITIVE_INFINITY, ...options };
  }

  open(path: string, kind: ScanKind, _bytes: number, events: FileScanEvents): FileScan {
    return new VirtualScan(this, this.#disk, path, kind, events);
  }

  stop(): void {
    this.stops++;
  }
}

class VirtualScan implements FileScan {
  readonly #scans: VirtualScans;
  readonly #disk: MemoryDisk;
  readonly #path: string;
  readonly #kind: ScanKind;
  readonly #events: FileScanEvents;
  #file: DiskFile | null = null;
  #scanner: RecordScanner | null = null;
  #position = 0;
  #end = 0;
  #isClosed = false;

  constructor(scans: VirtualScans, disk: MemoryDisk, path: string, kind: ScanKind, events: FileScanEvents) {
    this.#scans = scans;
    this.#disk = disk;
    this.#path = path;
    this.#kind = kind;
    this.#events = events;
  }

  canStart(): boolean {
    return true;
  }

  start(from: number, end: number, checksum: number): void {
    this.#scanner = makeRecordScanner(this.#kind, checksum);
    this.#position = from;
    this.#end = end;
    this.#disk.open(this.#path, { readOnly: true }, (error, file) => {
      this.#file = file;
      if (error === null) this.#next();
      else this.#finish();
    });
  }

  release(): void {
    this.#next();
  }

  close(): void {
    this.#isClosed = true;
    this.#file?.close();
  }

  #next(): void {
    const { chunkBytes, chunkRecordsMax, chunksMax } = this.#scans.options;
    const length = Math.min(chunkBytes, this.#end - this.#position);
    const file = this.#file!;
    file.read(this.#position, length, (error, bytes) => {
      if (this.#isClosed) return;
      const scanner = this.#scanner!;
      const rows = new Int32Array(chunkRecordsMax * ROW_INTS);
      const end = error !== null || scanner.isOver ? 0 : scanner.scan(bytes, bytes.length, rows);
      if (end === 0 || this.#scans.chunks === chunksMax) {
        this.#finish();
        return;
      }
      const { count, checksum } = scanner;
      const position = this.#position;
      this.#position += end;
      this.#scans.chunks++;
      this.#scans.records += count;
      // Offered to the tree, like memory of another thread.
      const memory = new ArrayBuffer(128 * 1024);
      this.#events.onChunk({ position, bytes, end, rows, count, checksum, memory } satisfies ScannedChunk);
    });
  }

  #finish(): void {
    if (this.#isClosed) return;
    this.#file?.close();
    this.#events.onScanEnd();
  }
}
