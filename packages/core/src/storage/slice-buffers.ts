/**
 * Memory for reading a file in slices, three buffers in rotation: one slice is processed, one is being read, and one is
 * requested, so that the disk does not wait for the event loop.
 *
 *     ┌──────────────────────┬────────────────────────────┐
 *     │ room for a rest      │ slice                      │
 *     └──────────────────────┴────────────────────────────┘
 *               ◄── rest of the previous slice, placed directly before
 *
 * A record that exceeds the room grows in a separate buffer, by doubling.
 *
 * Allocating each slice, and each join of it with a rest, took 440 MB for the log of a million creates (220 MB): the
 * kernel clears every page, and the garbage collector has to run.
 */
export class SliceBuffers {
  /** Allocated when first needed: most files of a small server end within one slice. */
  readonly #buffers: Uint8Array[] = [];
  #next = 0;
  /** A long rest joined with the slices after it; the next slice is appended. */
  #long: Uint8Array = NOTHING;
  #longEnd = 0;

  /**
   * Memory for the next slice. Overwrites the slice of READS_AHEAD calls before.
   *
   * @param bytes maximum length of the slice; the memory may be longer
   */
  room(bytes: number): Uint8Array {
    const index = this.#next;
    this.#next = (index + 1) % (READS_AHEAD + 1);
    let buffer = this.#buffers[index];
    if (buffer === undefined || buffer.length < REST_BYTES_MAX + bytes) {
      buffer = new Uint8Array(REST_BYTES_MAX + bytes);
      this.#buffers[index] = buffer;
    }
    return buffer.subarray(REST_BYTES_MAX);
  }

  /** The rest of the previous slice and the slice as one piece; `rest` may then be overwritten. */
  join(rest: Uint8Array, slice: Uint8Array): Uint8Array {
    if (rest.length === 0) {
      this.#long = NOTHING;
      return slice;
    }
    const start = REST_BYTES_MAX - rest.length;
    if (start >= 0 && this.#buffers.some(({ buffer }) => buffer === slice.buffer)) {
      const joined = new Uint8Array(slice.buffer, start, rest.length + slice.length);
      joined.set(rest);
      this.#long = NOTHING;
      return joined;
    }
    return this.#joinLong(rest, slice);
  }

  #joinLong(rest: Uint8Array, slice: Uint8Array): Uint8Array {
    const isThere = rest.buffer === this.#long.buffer && rest.byteOffset + rest.length === this.#longEnd;
    if (!isThere || this.#longEnd + slice.length > this.#long.length) {
      this.#long = new Uint8Array(2 * (rest.length + slice.length));
      this.#long.set(rest);
      this.#longEnd = rest.length;
    }
    this.#long.set(slice, this.#longEnd);
    this.#longEnd += slice.length;
    return this.#long.subarray(this.#longEnd - rest.length - slice.length, this.#longEnd);
  }
}

const NOTHING = new Uint8Array(0);

/** Reads that are requested before the slice before them has been processed. */
export const READS_AHEAD = 2;
/** A longer rest, part of an exceptionally large record, is joined in separate memory. */
const REST_BYTES_MAX = 64 * 1024;
