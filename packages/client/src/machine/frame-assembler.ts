import { EMPTY_BYTES, getInt } from '@meerkat/protocol';

/**
 * Cuts a stream of bytes into frames: `int length`, then as many bytes.
 *
 * Frames within one chunk are passed on as ranges of that chunk. A frame that began in an earlier chunk is copied into
 * a separate buffer, which grows with the data: a length alone reserves no memory.
 */
export class FrameAssembler {
  readonly #frameBytesMax: number;
  readonly #onFrame: (bytes: Uint8Array, start: number, end: number) => void;
  /** The received part of a frame, including its length field. */
  #partial: Uint8Array = EMPTY_BYTES;
  #partialBytes = 0;
  /** Incremented when `reset` is called while frames are passed on. */
  #incarnation = 0;

  constructor(frameBytesMax: number, onFrame: (bytes: Uint8Array, start: number, end: number) => void) {
    this.#frameBytesMax = frameBytesMax;
    this.#onFrame = onFrame;
  }

  /** Drops partial data: another connection begins. The rest of the current chunk is ignored. */
  reset(): void {
    this.#partial = EMPTY_BYTES;
    this.#partialBytes = 0;
    this.#incarnation++;
  }

  /** @returns null, or the invalid length */
  onBytes(chunk: Uint8Array): number | null {
    const incarnation = this.#incarnation;
    let position = 0;
    while (this.#partialBytes > 0) {
      const missing = this.#missingBytes();
      if (missing < 0) return getInt(this.#partial, 0);
      if (missing === 0) {
        const frame = this.#partial;
        const end = this.#partialBytes;
        this.#partial = EMPTY_BYTES;
        this.#partialBytes = 0;
        this.#onFrame(frame, LENGTH_BYTES, end);
        if (incarnation !== this.#incarnation) return null;
        break;
      }
      if (position === chunk.length) return null;
      const taken = Math.min(missing, chunk.length - position);
      this.#append(chunk, position, taken);
      position += taken;
    }
    const end = chunk.length;
    while (end - position >= LENGTH_BYTES) {
      const length = getInt(chunk, position);
      if (length < 0 || length > this.#frameBytesMax) return length;
      const start = position + LENGTH_BYTES;
      if (end - start < length) break;
      position = start + length;
      this.#onFrame(chunk, start, position);
      if (incarnation !== this.#incarnation) return null;
    }
    if (position < end) this.#append(chunk, position, end - position);
    return null;
  }

  /** Bytes until the length is known, or until the frame is complete; −1 when the length is invalid. */
  #missingBytes(): number {
    if (this.#partialBytes < LENGTH_BYTES) return LENGTH_BYTES - this.#partialBytes;
    const length = getInt(this.#partial, 0);
    if (length < 0 || length > this.#frameBytesMax) return -1;
    return LENGTH_BYTES + length - this.#partialBytes;
  }

  #append(chunk: Uint8Array, start: number, count: number): void {
    const needed = this.#partialBytes + count;
    if (needed > this.#partial.length) {
      const larger = new Uint8Array(Math.max(needed, this.#partial.length * 2, PARTIAL_BYTES_MIN));
      larger.set(this.#partial.subarray(0, this.#partialBytes));
      this.#partial = larger;
    }
    this.#partial.set(chunk.subarray(start, start + count), this.#partialBytes);
    this.#partialBytes = needed;
  }
}

const LENGTH_BYTES = 4;
const PARTIAL_BYTES_MIN = 1024;
