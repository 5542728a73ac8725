import type { PendingZnode } from './pending-znode.ts';

/**
 * What the parts of a multi that is being prepared have put, and what stood in their places before.
 *
 * The arrays stay as long as they have become, up to a bound: emptied by `length = 0` they would grow anew with each multi.
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

  /** null where there was none. */
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
