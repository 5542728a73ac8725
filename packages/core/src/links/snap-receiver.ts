import { isSnapSignatureAt, SNAP_SIGNATURE_BYTES, type Zxid } from '@meerkat/protocol';
import type { Database } from '../tree/database.ts';
import { SnapshotReader } from '../tree/snapshot-reader.ts';
import type { RawReceiver } from './packet-input.ts';

/** Reads the snapshot after a SNAP packet into a database, and checks its end signature. */
export class SnapReceiver implements RawReceiver {
  readonly database: Database;
  readonly #zxid: Zxid;
  readonly #reader: SnapshotReader;
  #hasEnded = false;
  #fault: string | null = null;

  /** @param zxid zxid of the SNAP packet: the last txn in the snapshot */
  constructor(database: Database, zxid: Zxid) {
    this.database = database;
    this.#zxid = zxid;
    this.#reader = new SnapshotReader(database);
  }

  get isComplete(): boolean {
    return this.#hasEnded;
  }

  get fault(): string | null {
    const { fault } = this.#reader;
    return fault === null ? this.#fault : `the leader's snapshot cannot be read: ${fault}`;
  }

  read(bytes: Uint8Array, start: number, end: number): number {
    const length = this.#reader.isComplete ? 0 : this.#reader.read(bytes, start, end);
    if (!this.#reader.isComplete) return length;
    const at = start + length;
    if (end - at < SNAP_SIGNATURE_BYTES) return length;
    if (isSnapSignatureAt(bytes, at)) {
      this.database.tree.lastZxid = this.#zxid;
      // The leader applied txns while it sent the tree.
      this.database.tree.exactFrom = Number.POSITIVE_INFINITY;
      this.#hasEnded = true;
    } else {
      this.#fault = "the leader's snapshot does not end with its signature";
    }
    return length + SNAP_SIGNATURE_BYTES;
  }
}
