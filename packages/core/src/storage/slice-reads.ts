/**
 * Consecutive reads of one file, some of them ahead, so that the disk does not wait for the event loop.
 *
 *     begin ─► onRead … ─┬─► drop ─► begin …
 *                        └─► close, or release
 *
 * Parts are delivered in the order of their positions, and none requested before the last `begin`, `drop`, `release` or
 * `close`.
 */
import type { DiskError, DiskFile } from '../base/ports.ts';
import { READS_AHEAD, SliceBuffers } from './slice-buffers.ts';

export interface SliceReadsEvents {
  /** @param isMore false for the last part of the file; a part without bytes can only be the last one */
  onRead(position: number, bytes: Uint8Array, isMore: boolean): void;
  onReadFailed(error: DiskError): void;
}

/** Bytes of one read, and so of one parsed slice: 2000 small entries. */
const SLICE_BYTES = 256 * 1024;

export class SliceReads {
  readonly #events: SliceReadsEvents;
  readonly #buffers: SliceBuffers = new SliceBuffers();
  #file: DiskFile | null = null;
  #size = 0;
  /** Position of the next read. */
  #readAt = 0;
  #inFlight = 0;
  /** Incremented to ignore the reads in flight. */
  #beginnings = 0;

  constructor(events: SliceReadsEvents) {
    this.#events = events;
  }

  /** Size of the file in bytes, as far as is known. */
  get size(): number {
    return this.#size;
  }

  get position(): number {
    return this.#readAt;
  }

  get isIdle(): boolean {
    return this.#inFlight === 0;
  }

  /** Reads a file from `startAt` to `size`; `close` or `release` has to follow. */
  begin(file: DiskFile, size: number, startAt: number): void {
    this.#file = file;
    this.#size = size;
    this.resume(startAt);
  }

  /** Reads on from a position. */
  resume(position: number): void {
    this.drop();
    this.#readAt = position;
    this.#inFlight = 0;
    // Also for an empty file: the completion is the event in which its end is processed.
    this.#readSlice();
    this.readAhead();
  }

  /** Requests the next slices. The previous one may still be in use, but its rest has been joined. */
  readAhead(): void {
    while (this.#inFlight < READS_AHEAD && this.#readAt < this.#size) this.#readSlice();
  }

  /** Reads the next part, into memory that is not reused. */
  readKept(bytes: number): void {
    this.#readPart(bytes, null);
  }

  /** Reads bytes independently of the other reads. */
  probe(position: number, bytes: number, done: (error: DiskError | null, bytes: Uint8Array) => void): void {
    this.#file!.read(position, bytes, this.#whileCurrent(done));
  }

  /** The rest of the previous slice and the slice as one piece. */
  join(rest: Uint8Array, slice: Uint8Array): Uint8Array {
    return this.#buffers.join(rest, slice);
  }

  /** Ignores the reads in flight; the file stays open. */
  drop(): void {
    this.#beginnings++;
  }

  /** Transfers the file to the caller. */
  release(): DiskFile {
    const file = this.#file!;
    this.#file = null;
    this.drop();
    return file;
  }

  close(): void {
    this.#file?.close();
    this.#file = null;
    this.drop();
  }

  #readSlice(): void {
    const bytes = Math.max(0, Math.min(SLICE_BYTES, this.#size - this.#readAt));
    this.#readPart(bytes, this.#buffers.room(bytes));
  }

  /** @param room see `DiskFile.read`; null for memory that is not reused */
  #readPart(bytes: number, room: Uint8Array | null): void {
    const file = this.#file!;
    const position = this.#readAt;
    this.#readAt = Math.min(position + bytes, this.#size);
    this.#inFlight++;
    const onRead = this.#whileCurrent((error, part) => {
      this.#inFlight--;
      if (error !== null) this.#events.onReadFailed(error);
      else this.#onBytes(position, part);
    });
    if (room === null) file.read(position, this.#readAt - position, onRead);
    else file.read(position, this.#readAt - position, onRead, room);
  }

  #whileCurrent(
    done: (error: DiskError | null, bytes: Uint8Array) => void,
  ): (error: DiskError | null, bytes: Uint8Array) => void {
    const beginning = this.#beginnings;
    return (error, bytes) => {
      if (this.#beginnings === beginning) done(error, bytes);
    };
  }

  #onBytes(position: number, bytes: Uint8Array): void {
    if (bytes.length === 0) this.#readAt = this.#size = position;
    this.#events.onRead(position, bytes, position + bytes.length < this.#size);
  }
}
