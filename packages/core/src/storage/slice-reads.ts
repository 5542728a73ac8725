/**
 * Reads of one file, one part behind the other, some of them ahead: the disk does not wait for the loop.
 *
 *     begin ─► onRead … ─┬─► drop ─► begin …
 *                        └─► close, or release
 *
 * Parts come in the order of their positions, and none that was asked for before the last `begin`, `drop`, `release` or `close`.
 */
import type { DiskError, DiskFile } from '../base/ports.ts';
import { READS_AHEAD, SliceBuffers } from './slice-buffers.ts';

export interface SliceReadsEvents {
  /** @param isMore false for the last part of the file; one without bytes may be the last, and the only one */
  onRead(position: number, bytes: Uint8Array, isMore: boolean): void;
  onReadFailed(error: DiskError): void;
}

/** Bytes of one read, and so of one slice of parsing: 2000 small entries. */
const SLICE_BYTES = 256 * 1024;

export class SliceReads {
  readonly #events: SliceReadsEvents;
  readonly #buffers: SliceBuffers = new SliceBuffers();
  #file: DiskFile | null = null;
  #size = 0;
  /** Position of the next read. */
  #readAt = 0;
  #inFlight = 0;
  /** Counts what ends the interest in the reads before. */
  #beginnings = 0;

  constructor(events: SliceReadsEvents) {
    this.#events = events;
  }

  /** Bytes of the file, as far as is known by now. */
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
    // Also of an empty file: its completion is the event that the file is judged with.
    this.#readSlice();
    this.readAhead();
  }

  /** Asks for the next slices. The one before may still be looked at, but its rest is joined by now. */
  readAhead(): void {
    while (this.#inFlight < READS_AHEAD && this.#readAt < this.#size) this.#readSlice();
  }

  /** Reads the next part, in bytes that are kept. */
  readKept(bytes: number): void {
    this.#readPart(bytes, null);
  }

  /** Reads bytes apart from the others. */
  probe(position: number, bytes: number, done: (error: DiskError | null, bytes: Uint8Array) => void): void {
    this.#file!.read(position, bytes, this.#whileCurrent(done));
  }

  /** The rest of the slice before and the slice in one piece. */
  join(rest: Uint8Array, slice: Uint8Array): Uint8Array {
    return this.#buffers.join(rest, slice);
  }

  /** Reads in flight are of no interest any more; the file stays open. */
  drop(): void {
    this.#beginnings++;
  }

  /** Leaves the file to the caller. */
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

  /** @param room see `DiskFile.read`; null for bytes that are kept */
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
