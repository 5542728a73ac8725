/**
 * The bytes of a snapshot file from its beginning, decompressed, in slices of about 256 KiB. A plain file is read ahead.
 */
import { assert } from '../base/assert.ts';
import type {
  ByteTransform,
  Disk,
  DiskError,
  DiskFile,
  FileScan,
  FileScans,
  Ports,
  ScannedChunk,
} from '../base/ports.ts';
import { compressionOf } from './file-names.ts';
import { READS_AHEAD, SliceBuffers } from './slice-buffers.ts';

export interface SliceEvents {
  /**
   * @param bytes what was not used of the slice before, and the next slice; overwritten later
   * @returns bytes that are used
   */
  onSlice(bytes: Uint8Array, isLast: boolean): number;
  /** The checksum up to the rest of the slice before, where the rest and what follows may be scanned; else null. */
  scanChecksum(): number | null;
  /** What was scanned, to be used as a whole. @returns true when the memory that came with it is the tree's */
  onScanned(chunk: ScannedChunk): boolean;
  /** The file cannot be read or decompressed; nothing follows. */
  onSliceFault(fault: string): void;
}

export interface SnapshotSlices {
  start(): void;
  /** Nothing follows. */
  close(): void;
}

const NOTHING = new Uint8Array(0);
const SLICE_BYTES = 256 * 1024;
/** As a rule snapshots are compressed to an eighth; one of zeros may take a thousand times as much memory as this. */
const COMPRESSED_SLICE_BYTES = 32 * 1024;

/** @param path its name says whether it is compressed */
export function makeSnapshotSlices(
  { disk, snapshotCodec = null, scans = null }: Pick<Ports, 'disk' | 'snapshotCodec' | 'scans'>,
  path: string,
  events: SliceEvents,
): SnapshotSlices {
  const compression = compressionOf(path);
  if (compression === null) return new PlainSlices(disk, scans, path, events);
  assert(snapshotCodec !== null, 'a compressed snapshot is read where there is a codec');
  return new CompressedSlices(disk, path, snapshotCodec.decompress(compression), events);
}

class PlainSlices implements SnapshotSlices {
  readonly #disk: Disk;
  readonly #scans: FileScans | null;
  readonly #path: string;
  readonly #events: SliceEvents;
  readonly #buffers: SliceBuffers = new SliceBuffers();
  #file: DiskFile | null = null;
  #rest: Uint8Array = NOTHING;
  #readAt = 0;
  #readsInFlight = 0;
  #isClosed = false;
  /** null when there is none. */
  #scan: FileScan | null = null;
  /** Where it began. */
  #scanFrom = 0;
  /** Where the next chunk of the scan begins. */
  #scanAt = 0;
  /** Counts the beginnings: a read that was asked for before the last one is of no interest. */
  #beginnings = 0;

  constructor(disk: Disk, scans: FileScans | null, path: string, events: SliceEvents) {
    this.#disk = disk;
    this.#scans = scans;
    this.#path = path;
    this.#events = events;
  }

  start(): void {
    this.#disk.open(this.#path, { readOnly: true }, (error, file) => {
      if (error !== null) return this.#events.onSliceFault(error.message);
      this.#file = file;
      this.#openScan(file, file.size);
      this.#readAhead(file);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#scan?.close();
    this.#file?.close();
  }

  #openScan(file: DiskFile, bytes: number): void {
    if (this.#scans === null) return;
    this.#scan = this.#scans.open(this.#path, 'snapshot', bytes, {
      onChunk: (chunk) => {
        if (!this.#isClosed) this.#onChunk(chunk);
      },
      onScanEnd: () => {
        if (!this.#isClosed) this.#resume(file);
      },
    });
  }

  #maybeScan(file: DiskFile, from: number): void {
    if (this.#isClosed || this.#scan?.canStart() !== true) return;
    const checksum = this.#events.scanChecksum();
    if (checksum === null) return;
    this.#beginnings++;
    this.#scanFrom = from;
    this.#scanAt = from;
    this.#scan.start(from, file.size, checksum);
  }

  #onChunk(chunk: ScannedChunk): void {
    assert(chunk.position === this.#scanAt, 'chunks follow each other');
    const isMemoryTaken = this.#events.onScanned(chunk);
    this.#scanAt += chunk.end;
    this.#scan?.release(chunk, isMemoryTaken);
  }

  /** Reads on where the scan has ended. There may be a znode that was too long for it: behind that there is another one. */
  #resume(file: DiskFile): void {
    this.#scan = null;
    if (this.#scanAt > this.#scanFrom) this.#openScan(file, file.size - this.#scanAt);
    this.#rest = NOTHING;
    this.#readsInFlight = 0;
    this.#readAt = this.#scanAt;
    this.#readAhead(file);
  }

  #readAhead(file: DiskFile): void {
    do this.#requestRead(file);
    while (this.#readsInFlight < READS_AHEAD && this.#readAt < file.size);
  }

  #requestRead(file: DiskFile): void {
    const position = this.#readAt;
    this.#readAt = Math.min(position + SLICE_BYTES, file.size);
    this.#readsInFlight++;
    const beginning = this.#beginnings;
    const onRead = (error: DiskError | null, bytes: Uint8Array): void => {
      if (this.#beginnings !== beginning) return;
      this.#readsInFlight--;
      this.#onRead(file, position, error, bytes);
    };
    const length = this.#readAt - position;
    file.read(position, length, onRead, this.#buffers.room(length));
  }

  #onRead(file: DiskFile, position: number, error: DiskError | null, bytes: Uint8Array): void {
    if (this.#isClosed) return;
    if (error !== null) {
      this.#events.onSliceFault(error.message);
      return;
    }
    const isMore = position + bytes.length < file.size && bytes.length > 0;
    const joined = this.#buffers.join(this.#rest, bytes);
    if (isMore && this.#readAt < file.size) this.#readAhead(file);
    this.#rest = joined.subarray(this.#events.onSlice(joined, !isMore));
    if (isMore) this.#maybeScan(file, position + bytes.length - this.#rest.length);
  }
}

class CompressedSlices implements SnapshotSlices {
  readonly #disk: Disk;
  readonly #path: string;
  readonly #transform: ByteTransform;
  readonly #events: SliceEvents;
  readonly #buffers: SliceBuffers = new SliceBuffers();
  #file: DiskFile | null = null;
  #rest: Uint8Array = NOTHING;
  #readAt = 0;
  #isClosed = false;

  /** @param transform decompresses the file, and is closed with this */
  constructor(disk: Disk, path: string, transform: ByteTransform, events: SliceEvents) {
    this.#disk = disk;
    this.#path = path;
    this.#transform = transform;
    this.#events = events;
  }

  start(): void {
    this.#disk.open(this.#path, { readOnly: true }, (error, file) => {
      if (error !== null) return this.#events.onSliceFault(error.message);
      this.#file = file;
      this.#read(file);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#transform.close();
    this.#file?.close();
  }

  #read(file: DiskFile): void {
    file.read(this.#readAt, COMPRESSED_SLICE_BYTES, (error, bytes) => {
      if (this.#isClosed) return;
      if (error !== null) return this.#events.onSliceFault(error.message);
      this.#readAt += bytes.length;
      const isLast = bytes.length < COMPRESSED_SLICE_BYTES || this.#readAt === file.size;
      this.#transform.push(bytes, isLast, (transformError, slice) => {
        if (this.#isClosed) return;
        if (transformError !== null) return this.#events.onSliceFault(transformError.message);
        if (slice.length > 0 || isLast) {
          const joined = this.#buffers.join(this.#rest, slice);
          this.#rest = joined.subarray(this.#events.onSlice(joined, isLast));
        }
        if (!isLast && !this.#isClosed) this.#read(file);
      });
    });
  }
}
