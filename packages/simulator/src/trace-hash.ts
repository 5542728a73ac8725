/**
 * One number for everything that happened: two runs of one seed that differ anywhere differ here.
 *
 * FNV-1a over UTF-16 code units, in two halves of 32 bits that start differently.
 */
export class TraceHash {
  #high = 0x811c9dc5;
  #low = 0x9dc5811c;
  #count = 0;

  add(line: string): void {
    this.#count++;
    for (let i = 0; i < line.length; i++) {
      const code = line.charCodeAt(i);
      this.#high = Math.imul(this.#high ^ code, FACTOR);
      this.#low = Math.imul(this.#low ^ (code + i), FACTOR);
    }
  }

  /** Lines so far. */
  get count(): number {
    return this.#count;
  }

  toString(): string {
    return (this.#high >>> 0).toString(16).padStart(8, '0') + (this.#low >>> 0).toString(16).padStart(8, '0');
  }
}

const FACTOR = 0x01000193;
