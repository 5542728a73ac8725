import { hashOf } from '../tree/path-index.ts';

/** Finds the indices of a path in a long list, without a hash table: lookups are rare. */
export class PathHashes {
  readonly #paths: readonly string[];
  readonly #hashes: Int32Array;
  /** A bit for the low bits of each hash, because most paths that are looked up are not in the list. */
  readonly #filter: Uint8Array;
  readonly #mask: number;
  readonly #taken: Set<string> = new Set();

  /** @param paths both '' and '/' are the root */
  constructor(paths: readonly string[]) {
    this.#paths = paths;
    this.#hashes = new Int32Array(paths.length);
    this.#mask = 2 ** Math.ceil(Math.log2(BITS_PER_PATH * (paths.length + 1))) - 1;
    this.#filter = new Uint8Array((this.#mask + 8) >> 3);
    for (const [i, path] of paths.entries()) {
      const hash = hashOf(canonical(path));
      this.#hashes[i] = hash;
      const bit = hash & this.#mask;
      this.#filter[bit >> 3]! |= 1 << (bit & 7);
    }
  }

  /** @returns the indices of the path; none when it was taken before */
  take(path: string): readonly number[] {
    const hash = hashOf(path);
    const bit = hash & this.#mask;
    if ((this.#filter[bit >> 3]! & (1 << (bit & 7))) === 0 || this.#taken.has(path)) return NOWHERE;
    this.#taken.add(path);
    const found: number[] = [];
    for (let i = this.#hashes.indexOf(hash); i >= 0; i = this.#hashes.indexOf(hash, i + 1)) {
      if (canonical(this.#paths[i]!) === path) found.push(i);
    }
    return found;
  }
}

function canonical(path: string): string {
  return path === '' ? '/' : path;
}

const BITS_PER_PATH = 16;
const NOWHERE: readonly number[] = [];
