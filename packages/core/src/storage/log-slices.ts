/**
 * The bytes of one log file after the other, in slices: one is looked at while the next ones are on their way.
 *
 *     begin ─► onSlice … ─► release, or close
 *                └─ readRest: behind the entries, where mostly zeros are
 *
 * Slices come in the order of their positions; after `release` or `close` none of that file does.
 */
import type { DiskError, DiskFile } from '../base/ports.ts';
import { lengthWithoutZeros } from './log-tail.ts';
import { READS_AHEAD, SliceBuffers } from './slice-buffers.ts';

export interface LogSlicesEvents {
  /** @param isMore false for the last slice of the file; one without bytes may be the last, and the only one */
  onSlice(position: number, bytes: Uint8Array, isMore: boolean): void;
  /** Of what `readRest` was to read, the bytes that were looked at are zeros. Nothing follows. */
  onZeros(): void;
  onReadFailed(error: DiskError): void;
}

/** Bytes of one read, and so of one slice of parsing: 2000 small entries. */
const SLICE_BYTES = 256 * 1024;
/** Bytes of one read behind the entries. */
const TAIL_SLICE_BYTES = 1024 * 1024;
const PROBE_BYTES = 4096;
const PROBE_DISTANCE_BYTES = 1024 * 1024;

export class LogSlices {
  readonly #events: LogSlicesEvents;
  readonly #buffers: SliceBuffers = new SliceBuffers();
  #file: DiskFile | null = null;
  #size = 0;
  /** Position of the next read. */
  #readAt = 0;
  #readsInFlight = 0;
  #isProbed = false;
  /** Counts the beginnings: a read that was asked for before the last one is of no interest. */
  #beginnings = 0;

  constructor(events: LogSlicesEvents) {
    this.#events = events;
  }

  /** Bytes of the file, as far as is known by now. */
  get size(): number {
    return this.#size;
  }

  /** Reads a file from `startAt` to `size`. */
  begin(file: DiskFile, size: number, startAt: number): void {
    this.#file = file;
    this.#size = size;
    this.#readAt = startAt;
    this.#readsInFlight = 0;
    this.#beginnings++;
    this.#isProbed = false;
    // Also of an empty file: its completion is the event that the file is judged with.
    this.#readSlice();
    this.readAhead();
  }

  /** Asks for the next slices. The one before may still be looked at, but its rest is joined by now. */
  readAhead(): void {
    while (this.#readsInFlight < READS_AHEAD && this.#readAt < this.#size) this.#readSlice();
  }

  /** The rest of the slice before and the slice in one piece. */
  join(rest: Uint8Array, slice: Uint8Array): Uint8Array {
    return this.#buffers.join(rest, slice);
  }

  /**
   * Reads on behind the entries, in bytes that are kept. Where all are zeros so far, it looks at a few bytes of every part
   * of the rest first, instead of all 64 MiB.
   *
   * What is overlooked so does no harm. Where an entry would begin there are zeros, so that nothing but the end or a
   * hole is possible; close to a hole the rest of a batch that a crash tore may lie unseen, which no reader ever reaches;
   * and more than a crash can leave is so long and dense that a probe meets it.
   */
  readRest(areZeros: boolean): void {
    if (this.#readsInFlight > 0) return;
    if (areZeros && !this.#isProbed) this.#probeRest();
    else this.#requestRead(TAIL_SLICE_BYTES, null);
  }

  /** Another thread reads on; reads in flight are dropped. The file stays open, for `resume`. */
  pause(): void {
    this.#beginnings++;
  }

  /** Reads on from a position. */
  resume(position: number): void {
    this.begin(this.#file!, this.#size, position);
  }

  /** Leaves the file to somebody else. */
  release(): DiskFile {
    const file = this.#file!;
    this.#file = null;
    return file;
  }

  close(): void {
    this.#file?.close();
    this.#file = null;
  }

  #readSlice(): void {
    const length = Math.max(0, Math.min(SLICE_BYTES, this.#size - this.#readAt));
    this.#requestRead(length, this.#buffers.room(length));
  }

  /** @param room see `DiskFile.read`; null for bytes that are kept */
  #requestRead(length: number, room: Uint8Array | null): void {
    const file = this.#file!;
    const position = this.#readAt;
    const beginning = this.#beginnings;
    this.#readAt = Math.min(position + length, this.#size);
    this.#readsInFlight++;
    const onRead = (error: DiskError | null, bytes: Uint8Array): void => {
      if (this.#file !== file || this.#beginnings !== beginning) return;
      this.#readsInFlight--;
      if (error !== null) this.#events.onReadFailed(error);
      else this.#onBytes(position, bytes);
    };
    if (room === null) file.read(position, this.#readAt - position, onRead);
    else file.read(position, this.#readAt - position, onRead, room);
  }

  #onBytes(position: number, bytes: Uint8Array): void {
    if (bytes.length === 0) this.#readAt = this.#size = position;
    this.#events.onSlice(position, bytes, position + bytes.length < this.#size);
  }

  #probeRest(): void {
    const file = this.#file!;
    this.#isProbed = true;
    let missing = 0;
    let isClear = true;
    const onProbe = (error: DiskError | null, bytes: Uint8Array): void => {
      if (this.#file !== file) return;
      if (error !== null) {
        this.#events.onReadFailed(error);
        return;
      }
      if (lengthWithoutZeros(bytes) > 0) isClear = false;
      if (--missing > 0) return;
      if (isClear) this.#events.onZeros();
      else this.#requestRead(TAIL_SLICE_BYTES, null);
    };
    for (let position = this.#readAt; position < this.#size; position += PROBE_DISTANCE_BYTES) {
      missing++;
      file.read(position, Math.min(PROBE_BYTES, this.#size - position), onProbe);
    }
  }
}
