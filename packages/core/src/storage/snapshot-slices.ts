/**
 * The bytes of a snapshot file from its beginning, decompressed, in slices of about 256 KiB. A plain file is read ahead.
 */
import { assert } from '../base/assert.ts';
import type { ByteTransform, Disk, DiskFile, FileScans, Ports, ScannedChunk } from '../base/ports.ts';
import { compressionOf } from './file-names.ts';
import { ScanAhead } from './scan-ahead.ts';
import { SliceBuffers } from './slice-buffers.ts';
import { SliceReads } from './slice-reads.ts';

export interface SliceEvents {
  /**
   * @param bytes the unused rest of the previous slice, and the next slice; overwritten later
   * @returns number of bytes used
   */
  onSlice(bytes: Uint8Array, isLast: boolean): number;
  /** The checksum up to the unused rest of the previous slice, if a scan may start there; else null. */
  scanChecksum(): number | null;
  /** A scanned chunk, to be processed as a whole. @returns true when the tree has taken the memory that came with it */
  onScanned(chunk: ScannedChunk): boolean;
  /** The file cannot be read or decompressed; nothing follows. */
  onSliceFault(fault: string): void;
}

export interface SnapshotSlices {
  start(): void;
  /** No more slices are needed. */
  close(): void;
}

const NOTHING = new Uint8Array(0);
/** Snapshots are usually compressed to an eighth; one of zeros may expand to a thousand times this size. */
const COMPRESSED_SLICE_BYTES = 32 * 1024;

/** @param path its name determines whether it is compressed */
export function makeSnapshotSlices(
  { disk, snapshotCodec = null, scans = null }: Pick<Ports, 'disk' | 'snapshotCodec' | 'scans'>,
  path: string,
  events: SliceEvents,
): SnapshotSlices {
  const compression = compressionOf(path);
  if (compression === null) return new PlainSlices(disk, scans, path, events);
  assert(snapshotCodec !== null, 'there is a codec for a compressed snapshot');
  return new CompressedSlices(disk, path, snapshotCodec.decompress(compression), events);
}

class PlainSlices implements SnapshotSlices {
  readonly #disk: Disk;
  readonly #path: string;
  readonly #events: SliceEvents;
  readonly #reads: SliceReads;
  readonly #scan: ScanAhead;
  #rest: Uint8Array = NOTHING;
  #isClosed = false;

  constructor(disk: Disk, scans: FileScans | null, path: string, events: SliceEvents) {
    this.#disk = disk;
    this.#path = path;
    this.#events = events;
    this.#reads = new SliceReads({
      onRead: (position, bytes, isMore) => this.#onRead(position, bytes, isMore),
      onReadFailed: (error) => events.onSliceFault(error.message),
    });
    this.#scan = new ScanAhead(scans, 'snapshot', {
      onScanned: (chunk) => events.onScanned(chunk),
      onScanEnd: (position) => {
        this.#rest = NOTHING;
        this.#reads.resume(position);
      },
    });
  }

  start(): void {
    this.#disk.open(this.#path, { readOnly: true }, (error, file) => {
      if (error !== null) return this.#events.onSliceFault(error.message);
      this.#scan.open(this.#path, file.size);
      this.#reads.begin(file, file.size, 0);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#scan.close();
    this.#reads.close();
  }

  #onRead(position: number, bytes: Uint8Array, isMore: boolean): void {
    const joined = this.#reads.join(this.#rest, bytes);
    this.#reads.readAhead();
    this.#rest = joined.subarray(this.#events.onSlice(joined, !isMore));
    if (isMore) this.#maybeScan(position + bytes.length - this.#rest.length);
  }

  #maybeScan(from: number): void {
    if (this.#isClosed || !this.#scan.canStart()) return;
    const checksum = this.#events.scanChecksum();
    if (checksum === null) return;
    this.#reads.drop();
    this.#scan.start(from, this.#reads.size, checksum);
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

  /** @param transform decompresses the file, and is closed with this object */
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
