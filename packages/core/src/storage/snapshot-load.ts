/**
 * One snapshot being read into an empty database, in slices, with its checksums verified.
 *
 * The parts behind the body may be missing (digests off, a version before 3.9); what is there must be whole and sealed.
 */
import { getInt, getLong, getLongBig } from '@meerkat/protocol';
import type { Disk, DiskError, DiskFile } from '../base/ports.ts';
import type { Database } from '../tree/database.ts';
import { SnapshotReader } from '../tree/snapshot-reader.ts';
import { ADLER_START, adler32 } from './adler32.ts';
import { READS_AHEAD, SliceBuffers } from './slice-buffers.ts';
import { faultOfSnapshotHeader, isSeal, SEAL_BYTES, SNAPSHOT_HEADER_BYTES } from './snapshot-format.ts';

/** What the tree's digest was when the snapshot's body was complete. */
export interface SnapshotDigest {
  /** From this zxid on the replayed tree is exact, and digests can be compared. 0: at once. */
  readonly zxid: number;
  readonly version: number;
  /** 0n of a version that this server does not compute. */
  readonly treeDigest: bigint;
}

export type SnapshotLoaded =
  | { readonly fault: string; readonly digest: null; readonly completeZxid: null }
  | {
      readonly fault: null;
      readonly digest: SnapshotDigest | null;
      /** The last zxid applied when the body was complete, so that nothing later is in it; null when it is not said. */
      readonly completeZxid: number | null;
    };

const SLICE_BYTES = 256 * 1024;
/** long zxid, int version, and the length of the text that version 1 has or the digest of version 2. */
const DIGEST_PART_BYTES = 20;
const LAST_ZXID_BYTES = 8;

export class SnapshotLoad {
  readonly #disk: Disk;
  readonly #path: string;
  readonly #reader: SnapshotReader;
  readonly #done: (result: SnapshotLoaded) => void;
  readonly #buffers: SliceBuffers = new SliceBuffers(SLICE_BYTES);
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
    file.read(position, this.#readAt - position, onRead, this.#buffers.room());
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
    const rest = this.#rest;
    const damaged = 'its checksum is wrong';
    if (!this.#passSeal(rest, 0)) {
      this.#finish(file, damaged);
      return;
    }
    let at = SEAL_BYTES;
    let digest: SnapshotDigest | null = null;
    let completeZxid: number | null = null;
    if (hasDigestPart(rest.length - at)) {
      const zxid = getLong(rest, at);
      const version = getInt(rest, at + 8);
      const isText = version < 2;
      digest = { zxid, version, treeDigest: isText ? 0n : getLongBig(rest, at + 12) };
      completeZxid = zxid;
      const partEnd = at + (isText ? 16 + getInt(rest, at + 12) : DIGEST_PART_BYTES);
      if (partEnd < at || !this.#passSeal(rest, at, partEnd)) {
        this.#finish(file, damaged);
        return;
      }
      at = partEnd + SEAL_BYTES;
    }
    if (rest.length - at >= LAST_ZXID_BYTES + SEAL_BYTES) {
      // The file's name decides about the zxid; this copy of it only has to be whole.
      if (!this.#passSeal(rest, at, at + LAST_ZXID_BYTES)) {
        this.#finish(file, damaged);
        return;
      }
      completeZxid = Math.max(completeZxid ?? 0, getLong(rest, at));
    }
    this.#isDone = true;
    file.close();
    this.#done({ fault: null, digest, completeZxid });
  }

  /** Checks the seal behind a part, and goes on behind the seal. */
  #passSeal(bytes: Uint8Array, partStart: number, partEnd: number = partStart): boolean {
    if (partEnd + SEAL_BYTES > bytes.length) return false;
    const checksum = adler32(this.#checksum, bytes, partStart, partEnd);
    if (!isSeal(bytes, partEnd, checksum)) return false;
    this.#checksum = adler32(checksum, bytes, partEnd, partEnd + SEAL_BYTES);
    return true;
  }

  #finish(file: DiskFile | null, fault: string): void {
    this.#isDone = true;
    file?.close();
    this.#done({ fault: fault, digest: null, completeZxid: null });
  }
}

/**
 * Whether a digest follows the first seal. A last zxid alone (digests off) is 21 bytes with its seal; a digest takes 33
 * or, as a text, at least 29. Nothing else is shorter than a digest.
 */
function hasDigestPart(bytes: number): boolean {
  return bytes > LAST_ZXID_BYTES + SEAL_BYTES;
}
