/**
 * The bytes of one log file after another, in slices: one is processed while the next ones are being read.
 *
 *     begin ─► onSlice … ─► release, or close
 *                └─ readRest: after the entries, where there are mostly zeros
 *
 * Slices are delivered in the order of their positions; none of a file follows after `release` or `close`.
 */
import type { DiskError, DiskFile } from '../base/ports.ts';
import { lengthWithoutZeros } from './log-tail.ts';
import { SliceReads } from './slice-reads.ts';

export interface LogSlicesEvents {
  /** @param isMore false for the last slice of the file; a slice without bytes can only be the last one */
  onSlice(position: number, bytes: Uint8Array, isMore: boolean): void;
  /** All bytes examined by `readRest` are zeros. Nothing follows. */
  onZeros(): void;
  onReadFailed(error: DiskError): void;
}

/** Bytes of one read after the entries. */
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

  /** Size of the file in bytes, as far as is known. */
  get size(): number {
    return this.#reads.size;
  }

  /** Reads a file from `startAt` to `size`. */
  begin(file: DiskFile, size: number, startAt: number): void {
    this.#isProbed = false;
    this.#reads.begin(file, size, startAt);
  }

  /** Requests the next slices. The previous one may still be in use, but its rest has been joined. */
  readAhead(): void {
    this.#reads.readAhead();
  }

  /** The rest of the previous slice and the slice as one piece. */
  join(rest: Uint8Array, slice: Uint8Array): Uint8Array {
    return this.#reads.join(rest, slice);
  }

  /**
   * Reads on after the entries, into memory that is not reused. While everything is zero, it first probes a few bytes
   * of every part of the rest, instead of reading all 64 MiB.
   *
   * What the probes miss is harmless. There are zeros where an entry would begin, so that only the end or a hole is
   * possible; the rest of a batch that a crash tore may go unseen near a hole, but no reader ever reaches it; and more
   * than a crash can leave is so long and dense that a probe hits it.
   */
  readRest(areZeros: boolean): void {
    if (!this.#reads.isIdle) return;
    if (areZeros && !this.#isProbed) this.#probeRest();
    else this.#reads.readKept(TAIL_SLICE_BYTES);
  }

  /** Another thread takes over; reads in flight are dropped. The file stays open, for `resume`. */
  pause(): void {
    this.#reads.drop();
  }

  /** Reads on from a position. */
  resume(position: number): void {
    this.#reads.resume(position);
  }

  /** Transfers the file to the caller. */
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
