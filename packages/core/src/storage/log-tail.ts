/** Collects the bytes of a log file after its last valid entry, slice by slice, for the check in `log-damage.ts`. */
import { keptBytesOf, type LogTail } from './log-damage.ts';

/** The bytes after the last valid entry that the check needs, and their total number. */
export class LogTailCollector {
  readonly position: number;
  /** Bytes up to the last one that is not zero. */
  length = 0;
  #seen = 0;
  #keptMax = 0;
  readonly #kept: Uint8Array[] = [];
  #keptLength = 0;

  constructor(position: number) {
    this.position = position;
  }

  add(bytes: Uint8Array): void {
    const used = lengthWithoutZeros(bytes);
    if (used > 0) this.length = this.#seen + used;
    // Zeros are kept only once something follows them; a clean end keeps nothing.
    if (this.#seen === 0) this.#keptMax = keptBytesOf(bytes);
    if (used > 0 || this.#keptLength > 0) this.#keep(bytes);
    this.#seen += bytes.length;
  }

  collected(): LogTail {
    return { position: this.position, bytes: this.#joined(), length: this.length };
  }

  #joined(): Uint8Array {
    const joined = new Uint8Array(Math.min(this.length, this.#keptMax));
    let at = 0;
    for (const part of this.#kept) {
      if (at >= joined.length) break;
      joined.set(part.subarray(0, joined.length - at), at);
      at += part.length;
    }
    return joined;
  }

  #keep(bytes: Uint8Array): void {
    const skipped = this.#seen - this.#keptLength;
    if (this.#seen >= this.#keptMax) return;
    if (skipped > 0) {
      this.#kept.push(new Uint8Array(skipped));
      this.#keptLength += skipped;
    }
    this.#kept.push(bytes);
    this.#keptLength += bytes.length;
  }
}

/** The number of bytes without trailing zeros. */
export function lengthWithoutZeros(bytes: Uint8Array): number {
  let end = bytes.length;
  while (end > 0 && (bytes.byteOffset + end) % 4 !== 0 && bytes[end - 1] === 0) end--;
  if ((bytes.byteOffset + end) % 4 === 0) {
    // Four bytes at a time: nearly all of them are zeros.
    const count = end >> 2;
    const words = new Int32Array(bytes.buffer, bytes.byteOffset + end - count * 4, count);
    let word = count;
    while (word > 0 && words[word - 1] === 0) word--;
    end -= (count - word) * 4;
  }
  while (end > 0 && bytes[end - 1] === 0) end--;
  return end;
}
