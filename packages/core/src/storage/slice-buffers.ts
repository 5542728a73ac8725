/**
 * Memory for reading a file in slices, three buffers in turn: one slice is looked at, one is being read, and one is asked
 * for, so that the disk does not wait for the loop.
 *
 *     ┌──────────────────────┬────────────────────────────┐
 *     │ room for a rest      │ slice                      │
 *     └──────────────────────┴────────────────────────────┘
 *               ◄── rest of the slice before, put right in front
 *
 * A record that is longer than the room grows in a buffer of its own, by doubling.
 *
 * New memory for each slice, and as much again for it and the rest together, is 440 MB for the log of a million creates
 * (220 MB): the kernel clears every page of it, and the garbage collector is called for.
 */
export class SliceBuffers {
  /** Made when they are first asked for: most files of a small server end within one slice. */
  readonly #buffers: Uint8Array[] = [];
  #next = 0;
  /** What a long rest and the slices behind it are joined in; the next slice goes where it ends. */
  #long: Uint8Array = NOTHING;
  #longEnd = 0;

  /**
   * Where the next slice may be read to. What was there READS_AHEAD slices before that is overwritten.
   *
   * @param bytes length of the slice, at most; the room may be longer
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

  /** The rest of the slice before and the slice in one piece; `rest` may then be overwritten. */
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

/** Reads that are asked for before the slice before them has been looked at. */
export const READS_AHEAD = 2;
/** A rest that is longer, part of an exceptionally large record, is joined in memory of its own. */
const REST_BYTES_MAX = 64 * 1024;
