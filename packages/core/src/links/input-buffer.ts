import { EMPTY_BYTES } from '@meerkat/protocol';

/**
 * Bytes that have come and are not read yet, in one piece.
 *
 *     bytes:  · · · c d e f g . . .        · read, . room of a buffer that is ours
 *                   ▲         ▲
 *                 start      end
 *
 * A chunk that finds nothing left is taken as it is, without a copy, and so is one that lies behind the end already. Memory
 * that has been read is not written again here, so views of it stay as they are for as long as somebody keeps them.
 */
export class InputBuffer {
  bytes: Uint8Array = EMPTY_BYTES;
  /** The reader moves it. */
  start = 0;
  end = 0;
  /** A chunk of which only the beginning has been taken; null when there is none. */
  #chunk: Uint8Array | null = null;
  /** How many of its bytes have been taken. */
  #taken = 0;

  get isEmpty(): boolean {
    return this.start === this.end && this.#chunk === null;
  }

  /** @param wanted bytes, from `start` on, with which there is something to read; 0 when that is not known */
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
    // A chunk of the stream's has no room behind its end, so it is never written to.
    if (this.end + chunk.length > this.bytes.length) this.#move(left, chunk.length, wanted);
    this.bytes.set(chunk, this.end);
    this.end += chunk.length;
  }

  /**
   * As `append`, for a reader that calls `more` when it has too little: of a long chunk only so much is copied behind what was left
   * as completes that, and the rest is read where it has come.
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

  /** @returns false when there is no more than the reader has */
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

  /** All of the chunk is behind what was left. */
  takeRest(): void {
    if (this.#chunk !== null) this.#take(this.#chunk.length);
  }

  /** Goes on in this memory, with what is left to be read at its beginning. */
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
   * What is longer than a chunk grows by doubling, so that something large in small chunks is not copied for each: no
   * faster, because what has been announced need not come, and no further than what is wanted.
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

/** So much of a chunk is copied at first; most packets are shorter. */
const PART_BYTES = 2048;
