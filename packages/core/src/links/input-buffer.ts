import { EMPTY_BYTES } from '@meerkat/protocol';

/**
 * Bytes that have arrived but are not read yet, in one piece.
 *
 *     bytes:  · · · c d e f g . . .        · read, . free space of a buffer of ours
 *                   ▲         ▲
 *                 start      end
 *
 * A chunk is taken without a copy if nothing is left to be read, or if it directly follows the end in memory. Memory
 * that has been read is not written again here, so views of it stay valid for as long as they are kept.
 */
export class InputBuffer {
  bytes: Uint8Array = EMPTY_BYTES;
  /** Moved by the reader. */
  start = 0;
  end = 0;
  /** A chunk of which only the beginning has been copied; otherwise null. */
  #chunk: Uint8Array | null = null;
  /** Bytes of the chunk that have been copied. */
  #taken = 0;

  get isEmpty(): boolean {
    return this.start === this.end && this.#chunk === null;
  }

  /** @param wanted bytes, counted from `start`, that the reader needs; 0 when unknown */
  append(chunk: Uint8Array, wanted = 0): void {
    if (this.#isBehindEnd(chunk)) {
      this.end += chunk.length;
      return;
    }
    const left = this.end - this.start;
    if (left === 0) {
      this.bytes = chunk;
      this.start = 0;
      this.end = chunk.length;
      return;
    }
    // A chunk from the stream has no room after its end, so it is never written to.
    if (this.end + chunk.length > this.bytes.length) this.#move(left, chunk.length, wanted);
    this.bytes.set(chunk, this.end);
    this.end += chunk.length;
  }

  /**
   * Like `append`, for a reader that calls `more` when it needs more: only as much of a long chunk is copied as
   * completes what was left, and the rest is read in place.
   *
   *     left │ beginning of the chunk ──► more ──► the chunk itself, from where the reader is
   */
  appendPart(chunk: Uint8Array): void {
    this.takeRest();
    if (this.start === this.end || chunk.length <= PART_BYTES || this.#isBehindEnd(chunk)) {
      this.append(chunk);
      return;
    }
    this.#chunk = chunk;
    this.#taken = 0;
    this.#take(PART_BYTES);
  }

  /** @returns false when the reader already has everything */
  more(): boolean {
    const chunk = this.#chunk;
    if (chunk === null) return false;
    const left = this.end - this.start;
    if (left > this.#taken) {
      this.#take(left);
      return true;
    }
    this.#chunk = null;
    this.bytes = chunk;
    this.start = this.#taken - left;
    this.end = chunk.length;
    return true;
  }

  #take(count: number): void {
    const chunk = this.#chunk!;
    const end = Math.min(this.#taken + count, chunk.length);
    this.append(chunk.subarray(this.#taken, end));
    this.#taken = end;
    if (end === chunk.length) this.#chunk = null;
  }

  /** Copies the rest of the chunk behind what was left. */
  takeRest(): void {
    if (this.#chunk !== null) this.#take(this.#chunk.length);
  }

  /** Continues in this memory, with unread bytes moved to its beginning. */
  moveTo(bytes: Uint8Array): void {
    bytes.set(this.bytes.subarray(this.start, this.end));
    this.bytes = bytes;
    this.end -= this.start;
    this.start = 0;
  }

  clear(): void {
    this.#chunk = null;
    this.bytes = EMPTY_BYTES;
    this.start = 0;
    this.end = 0;
  }

  #isBehindEnd(chunk: Uint8Array): boolean {
    const { bytes, end } = this;
    if (end + chunk.length > bytes.length || chunk.buffer !== bytes.buffer) return false;
    return chunk.byteOffset === bytes.byteOffset + end;
  }

  /**
   * Capacity doubles when something is longer than a chunk, so that a large packet in small chunks is not copied for
   * each of them: no faster, because announced bytes may never arrive, and no further than wanted.
   */
  #move(left: number, coming: number, wanted: number): void {
    const needed = left + coming;
    const doubled = left < coming ? needed : 2 * needed;
    const bytes = new Uint8Array(wanted > needed ? Math.min(wanted, doubled) : doubled);
    bytes.set(this.bytes.subarray(this.start, this.end));
    this.bytes = bytes;
    this.start = 0;
    this.end = left;
  }
}

/** Bytes of a chunk that are copied first; most packets are shorter. */
const PART_BYTES = 2048;
