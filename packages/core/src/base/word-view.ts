/**
 * Bytes as words of 32 bits, to go through them in a fourth of the steps. It remembers what it made last: a view costs as much
 * as going through some hundred bytes. What it remembers it keeps in memory.
 */
export class WordView {
  #bytes: Uint8Array = NO_BYTES;
  #words: Int32Array = NO_WORDS;
  /** Of the byte `bytes[0]`, in its buffer. */
  #offset = 0;

  /** All of the memory in which `bytes` are, as words with the lowest byte first, as everywhere that Node.js is built for. */
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
