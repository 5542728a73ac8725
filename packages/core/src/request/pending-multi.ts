import type { PendingZnode } from './pending-znode.ts';

/**
 * The znodes that the parts of the multi in preparation have put, and the ones that they replaced.
 *
 * The arrays keep their length, up to a bound: after `length = 0` they would have to grow again with each multi.
 */
export class PendingMulti {
  #puts: (PendingZnode | null)[] = [];
  #before: (PendingZnode | null)[] = [];
  #count = 0;

  get count(): number {
    return this.#count;
  }

  putAt(i: number): PendingZnode {
    return this.#puts[i]!;
  }

  /** null when it replaced none. */
  beforeAt(i: number): PendingZnode | null {
    return this.#before[i]!;
  }

  push(put: PendingZnode, before: PendingZnode | null): void {
    this.#puts[this.#count] = put;
    this.#before[this.#count] = before;
    this.#count++;
  }

  clear(): void {
    if (this.#count > KEPT_MAX) {
      this.#puts = [];
      this.#before = [];
    } else {
      for (let i = 0; i < this.#count; i++) {
        this.#puts[i] = null;
        this.#before[i] = null;
      }
    }
    this.#count = 0;
  }
}

const KEPT_MAX = 64;
