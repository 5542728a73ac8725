/**
 * Writes one snapshot while the server serves (a fuzzy snapshot): one slice of the tree whenever the disk has written
 * the previous one, so that a turn is blocked only for the encoding of a slice.
 *
 *     create unfinished-snapshot.<zxid> ─► slices ─► sync ─► slices ─► sync ─► … ─► seals ─► sync ─► rename to snapshot.<zxid>
 *                                                                                         ─► sync the directory ─► done
 *
 * Log syncs on the same disk wait for each sync of the snapshot, so it is synced piece by piece. During a snapshot of
 * 300 MB on ext4 the longest write to a log took 110 ms with one sync at the end, 16 ms with pieces of 4 MiB, 22 ms
 * with 16 MiB (medians of 4).
 *
 * Slices may be compressed; seals cover the uncompressed bytes.
 *
 * Under its final name there is only ever a whole, synced snapshot. The tree may change between slices; txns after
 * `zxid` are replayed over what the snapshot already contains of them, which is idempotent.
 */
import { DIGEST_VERSION, JuteWriter, type Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { ByteTransform, Compression, DiskError, DiskFile, Ports } from '../base/ports.ts';
import type { Database } from '../tree/database.ts';
import { SnapshotWriter } from '../tree/snapshot-writer.ts';
import { ADLER_START, adler32 } from './adler32.ts';
import { installingSnapshotName, snapshotName, unfinishedSnapshotName } from './file-names.ts';
import { writeSeal, writeSnapshotHeader } from './snapshot-format.ts';

export interface SnapshotWriteOptions {
  readonly snapshotDirectory: string;
  readonly digestEnabled: boolean;
  /** Omitted or null: none. */
  readonly snapshotCompression?: Compression | null;
  /** True for a snapshot that will replace the history: it gets the intermediate name for that. */
  readonly isToBeInstalled?: boolean;
  /** True for a snapshot whose owner cannot continue without it, and reports the failure itself. */
  readonly isIndispensable?: boolean;
}

export interface SnapshotWriteEvents {
  /** The snapshot is durable. @param bytes its uncompressed size */
  onSnapshotWritten(zxid: Zxid, bytes: number): void;
  /** There is no snapshot; nothing is lost, as the log has everything. */
  onSnapshotFailed(error: Error): void;
}

/** Bytes encoded in one turn: about a millisecond. */
const SLICE_BYTES = 256 * 1024;
/** Bytes written between two syncs. */
const PIECE_BYTES = 4 * 1024 * 1024;

export class SnapshotWrite {
  /** The last zxid applied when the snapshot began; its name. */
  readonly zxid: Zxid;
  readonly #ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'clock' | 'trace'>;
  readonly #options: SnapshotWriteOptions;
  readonly #events: SnapshotWriteEvents;
  readonly #database: Database;
  readonly #body: SnapshotWriter;
  readonly #writer: JuteWriter = new JuteWriter(SLICE_BYTES + 64 * 1024);
  readonly #path: string;
  readonly #unfinishedPath: string;
  readonly #startedMs: number;
  /** null: no compression. */
  readonly #transform: ByteTransform | null;
  #checksum: number = ADLER_START;
  /** Bytes of the current slice that the checksum already covers. */
  #summed = 0;
  /** File position of the next write. */
  #position = 0;
  #syncedPosition = 0;
  /** Uncompressed size so far. */
  #bytes = 0;
  #isAbandoned = false;

  constructor(
    ports: Pick<Ports, 'disk' | 'snapshotCodec' | 'clock' | 'trace'>,
    options: SnapshotWriteOptions,
    database: Database,
    events: SnapshotWriteEvents,
  ) {
    this.#ports = ports;
    this.#options = options;
    this.#events = events;
    this.#database = database;
    this.#body = new SnapshotWriter(database);
    this.zxid = this.#body.zxid;
    const compression = options.snapshotCompression ?? null;
    this.#transform = makeTransform(ports, compression);
    const makeName = options.isToBeInstalled === true ? installingSnapshotName : snapshotName;
    const name = makeName(this.zxid, compression);
    this.#path = `${options.snapshotDirectory}/${name}`;
    this.#unfinishedPath = `${options.snapshotDirectory}/${unfinishedSnapshotName(this.zxid)}`;
    this.#startedMs = ports.clock.monotonicMs();
  }

  start(): void {
    const { disk, trace } = this.#ports;
    trace.emit({ kind: 'snapshot-started', file: this.#path });
    disk.create(this.#unfinishedPath, (error, file) => {
      if (error !== null) return this.#fail(error, null);
      writeSnapshotHeader(this.#writer);
      this.#writeSlice(file);
    });
  }

  /** Aborts; `onSnapshotFailed` follows once the disk has answered. */
  abandon(): void {
    this.#isAbandoned = true;
  }

  #writeSlice(file: DiskFile): void {
    if (this.#isAbandoned) {
      this.#fail(new Error('the server is stopping'), file);
      return;
    }
    const writer = this.#writer;
    const isComplete = this.#body.writeSlice(writer, SLICE_BYTES);
    if (isComplete) this.#writeEnd(writer);
    this.#sum(writer);
    const slice = writer.bytes.subarray(0, writer.position);
    this.#bytes += slice.length;
    if (this.#transform === null) {
      this.#writeBytes(file, slice, isComplete);
      return;
    }
    this.#transform.push(slice, isComplete, (error, bytes) => {
      if (error === null) this.#writeBytes(file, bytes, isComplete);
      else this.#fail(error, file);
    });
  }

  /** @param bytes neither they nor the slice that they were made of are needed once they are written */
  #writeBytes(file: DiskFile, bytes: Uint8Array, isComplete: boolean): void {
    if (bytes.length === 0) {
      this.#onSliceWritten(file, isComplete);
      return;
    }
    file.write(this.#position, bytes, (error) => {
      if (error !== null) return this.#fail(error, file);
      this.#position += bytes.length;
      this.#onSliceWritten(file, isComplete);
    });
  }

  #onSliceWritten(file: DiskFile, isComplete: boolean): void {
    this.#writer.position = 0;
    this.#summed = 0;
    if (isComplete) this.#finish(file);
    else if (this.#position - this.#syncedPosition < PIECE_BYTES) this.#writeSlice(file);
    else this.#syncPiece(file);
  }

  #syncPiece(file: DiskFile): void {
    file.sync((error) => {
      if (error !== null) return this.#fail(error, file);
      this.#syncedPosition = this.#position;
      this.#writeSlice(file);
    });
  }

  /** The parts after the body; digest and last zxid are the current ones, as the body is complete. */
  #writeEnd(writer: JuteWriter): void {
    writeSeal(writer, this.#sum(writer));
    this.#database.tree.settle();
    const lastZxid = this.#database.lastZxid;
    if (this.#options.digestEnabled) {
      writer.long(lastZxid);
      writer.int(DIGEST_VERSION);
      // Nothing has been applied at zxid 0, and Apache writes no digest of an empty history.
      writer.longBig(lastZxid === 0 ? 0n : this.#database.tree.treeDigest());
      writeSeal(writer, this.#sum(writer));
    }
    writer.long(lastZxid);
    writeSeal(writer, this.#sum(writer));
  }

  #sum(writer: JuteWriter): number {
    this.#checksum = adler32(this.#checksum, writer.bytes, this.#summed, writer.position);
    this.#summed = writer.position;
    return this.#checksum;
  }

  #finish(file: DiskFile): void {
    const { disk } = this.#ports;
    const { snapshotDirectory } = this.#options;
    file.sync((error) => {
      if (error !== null) return this.#fail(error, file);
      file.close();
      disk.rename(this.#unfinishedPath, this.#path, (renameError) => {
        if (renameError !== null) return this.#fail(renameError, null);
        disk.syncDirectory(snapshotDirectory, (syncError) => {
          if (syncError !== null) return this.#fail(syncError, null);
          const ms = this.#ports.clock.monotonicMs() - this.#startedMs;
          this.#ports.trace.emit({ kind: 'snapshot-written', file: this.#path, bytes: this.#position, ms });
          this.#events.onSnapshotWritten(this.zxid, this.#bytes);
        });
      });
    });
  }

  #fail(cause: DiskError | Error, file: DiskFile | null): void {
    this.#body.release();
    this.#transform?.close();
    file?.close();
    // If this fails, the next start removes the file; under this name it is never read.
    this.#ports.disk.remove(this.#unfinishedPath, () => {
      const isReported = !this.#isAbandoned && this.#options.isIndispensable !== true;
      if (isReported) this.#ports.trace.emit({ kind: 'snapshot-failed', file: this.#path, error: cause });
      this.#events.onSnapshotFailed(cause);
    });
  }
}

function makeTransform(
  { snapshotCodec = null }: Pick<Ports, 'snapshotCodec'>,
  compression: Compression | null,
): ByteTransform | null {
  if (compression === null) return null;
  assert(snapshotCodec !== null, 'there is a codec for compressed snapshots');
  return snapshotCodec.compress(compression);
}
