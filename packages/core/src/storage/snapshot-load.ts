/**
 * Reads one snapshot into an empty database, in slices, and verifies its checksums.
 *
 * The parts after the body may be missing (digests off, a version before 3.9); existing ones must be whole and sealed.
 */
import type { Ports, ScannedChunk } from '../base/ports.ts';
import type { Database } from '../tree/database.ts';
import { SnapshotReader } from '../tree/snapshot-reader.ts';
import { ADLER_START, adler32 } from './adler32.ts';
import { readSnapshotEnd, type SnapshotEnd } from './snapshot-end.ts';
import { faultOfSnapshotHeader, SNAPSHOT_HEADER_BYTES } from './snapshot-format.ts';
import { makeSnapshotSlices, type SnapshotSlices } from './snapshot-slices.ts';

/** `fault` null: the snapshot is whole. `bytes`: its size, decompressed. */
export type SnapshotLoaded =
  | { readonly fault: string; readonly digest: null; readonly completeZxid: null; readonly bytes: number }
  | ({ readonly fault: null; readonly bytes: number } & SnapshotEnd);

export class SnapshotLoad {
  readonly #slices: SnapshotSlices;
  readonly #reader: SnapshotReader;
  readonly #database: Database;
  readonly #done: (result: SnapshotLoaded) => void;
  #checksum: number = ADLER_START;
  #hasHeader = false;
  /** Bytes processed so far. */
  #bytes = 0;

  /**
   * @param path a compressed file only if there is a codec
   * @param done called once, in a later event; after a fault the database is unusable
   */
  constructor(
    ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'scans'>,
    path: string,
    database: Database,
    done: (result: SnapshotLoaded) => void,
  ) {
    this.#reader = new SnapshotReader(database);
    this.#database = database;
    this.#done = done;
    this.#slices = makeSnapshotSlices(ports, path, {
      onSlice: (bytes, isLast) => this.#onSlice(bytes, isLast),
      scanChecksum: () => (this.#reader.isInZnodes ? this.#checksum : null),
      onScanned: (chunk) => this.#onScanned(chunk),
      onSliceFault: (fault) => void this.#refuse(fault),
    });
  }

  start(): void {
    this.#slices.start();
  }

  #onSlice(bytes: Uint8Array, isLast: boolean): number {
    if (!this.#hasHeader) {
      if (bytes.length < SNAPSHOT_HEADER_BYTES) return isLast ? this.#refuse('it is cut short') : 0;
      const headerFault = faultOfSnapshotHeader(bytes);
      if (headerFault !== null) return this.#refuse(headerFault);
    }
    const used = this.#parse(bytes);
    const fault = this.#reader.fault;
    if (fault !== null) return this.#refuse(fault);
    this.#bytes += used;
    if (isLast) this.#checkEnd(bytes.subarray(used));
    return used;
  }

  #onScanned({ bytes, end, rows, count, checksum, memory }: ScannedChunk): boolean {
    const isMemoryTaken = memory !== null && this.#database.tree.state.table.arena.offer(memory);
    this.#reader.readScanned(bytes, rows, count);
    this.#checksum = checksum;
    this.#bytes += end;
    const { fault } = this.#reader;
    if (fault !== null) this.#refuse(fault);
    return isMemoryTaken;
  }

  /** @returns bytes of complete records */
  #parse(bytes: Uint8Array): number {
    let at = this.#hasHeader ? 0 : SNAPSHOT_HEADER_BYTES;
    this.#hasHeader = true;
    if (!this.#reader.isComplete) at += this.#reader.read(bytes, at, bytes.length);
    this.#checksum = adler32(this.#checksum, bytes, 0, at);
    return at;
  }

  /** @param rest the seals and the parts between them */
  #checkEnd(rest: Uint8Array): void {
    if (!this.#reader.isComplete) {
      this.#refuse('it is cut short');
      return;
    }
    const end = readSnapshotEnd(rest, this.#checksum);
    if (end === null) {
      this.#refuse('its checksum is wrong');
      return;
    }
    this.#slices.close();
    this.#done({ fault: null, bytes: this.#bytes + rest.length, ...end });
  }

  /** @returns 0: nothing more is used */
  #refuse(fault: string): 0 {
    this.#slices.close();
    this.#done({ fault, digest: null, completeZxid: null, bytes: this.#bytes });
    return 0;
  }
}
