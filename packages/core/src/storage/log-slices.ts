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
import { SliceReads } from './slice-reads.ts';

export interface LogSlicesEvents {
  /** @param isMore false for the last slice of the file; one without bytes may be the last, and the only one */
  onSlice(position: number, bytes: Uint8Array, isMore: boolean): void;
  /** Of what `readRest` was to read, the bytes that were looked at are zeros. Nothing follows. */
  onZeros(): void;
  onReadFailed(error: DiskError): void;
}

/** Bytes of one read behind the entries. */
const TAIL_SLICE_BYTES = 1024 * 1024;
const PROBE_BYTES = 4096;
const PROBE_DISTANCE_BYTES = 1024 * 1024;

export class LogSlices {
  readonly #events: LogSlicesEvents;
  readonly #reads: SliceReads;
  #isProbed = false;

  constructor(events: LogSlicesEvents) {
    this.#events = events;
    this.#reads = new SliceReads({
      onRead: (position, bytes, isMore) => events.onSlice(position, bytes, isMore),
      onReadFailed: (error) => events.onReadFailed(error),
    });
  }

  /** Bytes of the file, as far as is known by now. */
  get size(): number {
    return this.#reads.size;
  }

  /** Reads a file from `startAt` to `size`. */
  begin(file: DiskFile, size: number, startAt: number): void {
    this.#isProbed = false;
    this.#reads.begin(file, size, startAt);
  }

  /** Asks for the next slices. The one before may still be looked at, but its rest is joined by now. */
  readAhead(): void {
    this.#reads.readAhead();
  }

  /** The rest of the slice before and the slice in one piece. */
  join(rest: Uint8Array, slice: Uint8Array): Uint8Array {
    return this.#reads.join(rest, slice);
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
    if (!this.#reads.isIdle) return;
    if (areZeros && !this.#isProbed) this.#probeRest();
    else this.#reads.readKept(TAIL_SLICE_BYTES);
  }

  /** Another thread reads on; reads in flight are dropped. The file stays open, for `resume`. */
  pause(): void {
    this.#reads.drop();
  }

  /** Reads on from a position. */
  resume(position: number): void {
    this.#reads.resume(position);
  }

  /** Leaves the file to the caller. */
  release(): DiskFile {
    return this.#reads.release();
  }

  close(): void {
    this.#reads.close();
  }

  #probeRest(): void {
    const { position: start, size } = this.#reads;
    this.#isProbed = true;
    let missing = 0;
    let isClear = true;
    const onProbe = (error: DiskError | null, bytes: Uint8Array): void => {
      if (error !== null) {
        this.#events.onReadFailed(error);
        return;
      }
      if (lengthWithoutZeros(bytes) > 0) isClear = false;
      if (--missing > 0) return;
      if (isClear) this.#events.onZeros();
      else this.#reads.readKept(TAIL_SLICE_BYTES);
    };
    for (let position = start; position < size; position += PROBE_DISTANCE_BYTES) {
      missing++;
      this.#reads.probe(position, Math.min(PROBE_BYTES, size - position), onProbe);
    }
  }
}
