/**
 * One snapshot being read into an empty database, in slices, with its checksums verified.
 *
 * The parts behind the body may be missing (digests off, a version before 3.9); what is there must be whole and sealed.
 */
import type { Disk, DiskError, DiskFile } from '../base/ports.ts';
import type { Database } from '../tree/database.ts';
import { SnapshotReader } from '../tree/snapshot-reader.ts';
import { ADLER_START, adler32 } from './adler32.ts';
import { READS_AHEAD, SliceBuffers } from './slice-buffers.ts';
import { readSnapshotEnd, type SnapshotEnd } from './snapshot-end.ts';
import { faultOfSnapshotHeader, SNAPSHOT_HEADER_BYTES } from './snapshot-format.ts';

/** `fault` null: the snapshot is whole. */
export type SnapshotLoaded =
  | { readonly fault: string; readonly digest: null; readonly completeZxid: null }
  | ({ readonly fault: null } & SnapshotEnd);

const SLICE_BYTES = 256 * 1024;

export class SnapshotLoad {
  readonly #disk: Disk;
  readonly #path: string;
  readonly #reader: SnapshotReader;
  readonly #done: (result: SnapshotLoaded) => void;
  readonly #buffers: SliceBuffers = new SliceBuffers();
  #checksum: number = ADLER_START;
  #hasHeader = false;
  #rest: Uint8Array = new Uint8Array(0);
  #readAt = 0;
  #readsInFlight = 0;
  #isDone = false;

  /** @param done told once, with a later event; after a fault the database is of no use */
  constructor(disk: Disk, path: string, database: Database, done: (result: SnapshotLoaded) => void) {
    this.#disk = disk;
    this.#path = path;
    this.#reader = new SnapshotReader(database);
    this.#done = done;
  }

  start(): void {
    this.#disk.open(this.#path, { readOnly: true }, (error, file) => {
      if (error !== null) return this.#finish(null, error.message);
      this.#readAhead(file);
    });
  }

  #readAhead(file: DiskFile): void {
    do this.#requestRead(file);
    while (this.#readsInFlight < READS_AHEAD && this.#readAt < file.size);
  }

  #requestRead(file: DiskFile): void {
    const position = this.#readAt;
    this.#readAt = Math.min(position + SLICE_BYTES, file.size);
    this.#readsInFlight++;
    const onRead = (error: DiskError | null, bytes: Uint8Array): void => {
      this.#readsInFlight--;
      this.#onRead(file, position, error, bytes);
    };
    const length = this.#readAt - position;
    file.read(position, length, onRead, this.#buffers.room(length));
  }

  #onRead(file: DiskFile, position: number, error: DiskError | null, bytes: Uint8Array): void {
    if (this.#isDone) return;
    if (error !== null) {
      this.#finish(file, error.message);
      return;
    }
    const isMore = position + bytes.length < file.size && bytes.length > 0;
    const joined = this.#buffers.join(this.#rest, bytes);
    if (isMore && this.#readAt < file.size) this.#readAhead(file);
    if (!this.#hasHeader) {
      if (joined.length < SNAPSHOT_HEADER_BYTES) {
        this.#finish(file, 'it is cut short');
        return;
      }
      const headerFault = faultOfSnapshotHeader(joined);
      if (headerFault !== null) {
        this.#finish(file, headerFault);
        return;
      }
    }
    const used = this.#parse(joined);
    const fault = this.#reader.fault;
    if (fault !== null) {
      this.#finish(file, fault);
      return;
    }
    this.#rest = joined.subarray(used);
    if (isMore) return;
    if (!this.#reader.isComplete) {
      this.#finish(file, 'it is cut short');
      return;
    }
    this.#checkEnd(file);
  }

  /** @returns bytes of complete records */
  #parse(bytes: Uint8Array): number {
    let at = this.#hasHeader ? 0 : SNAPSHOT_HEADER_BYTES;
    this.#hasHeader = true;
    if (!this.#reader.isComplete) at += this.#reader.read(bytes, at, bytes.length);
    this.#checksum = adler32(this.#checksum, bytes, 0, at);
    return at;
  }

  /** What is left are the seals and the parts between them. */
  #checkEnd(file: DiskFile): void {
    const end = readSnapshotEnd(this.#rest, this.#checksum);
    if (end === null) {
      this.#finish(file, 'its checksum is wrong');
      return;
    }
    this.#isDone = true;
    file.close();
    this.#done({ fault: null, ...end });
  }

  #finish(file: DiskFile | null, fault: string): void {
    this.#isDone = true;
    file?.close();
    this.#done({ fault: fault, digest: null, completeZxid: null });
  }
}
