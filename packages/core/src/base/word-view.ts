/**
 * Bytes as 32-bit words, to process them in a quarter of the steps. The last view is cached, as creating one costs as
 * much as processing some hundred bytes; the cache keeps its memory alive.
 */
export class WordView {
  #bytes: Uint8Array = NO_BYTES;
  #words: Int32Array = NO_WORDS;
  /** Of `bytes[0]` in its buffer. */
  #offset = 0;

  /** The whole buffer of `bytes` as little-endian words; all platforms of Node.js are little-endian. */
  of(bytes: Uint8Array): Int32Array {
    if (bytes === this.#bytes) return this.#words;
    const { buffer, byteOffset } = bytes;
    if (buffer !== this.#words.buffer) this.#words = new Int32Array(buffer, 0, buffer.byteLength >> 2);
    this.#bytes = bytes;
    this.#offset = byteOffset;
    return this.#words;
  }

  /** The first index from `start` on at which a word begins. */
  alignedFrom(start: number): number {
    return start + (-(start + this.#offset) & 3);
  }

  /** The index of the word that begins at `bytes[at]`. */
  wordAt(at: number): number {
    return (at + this.#offset) >> 2;
  }
}

const NO_BYTES = new Uint8Array(0);
const NO_WORDS = new Int32Array(0);
