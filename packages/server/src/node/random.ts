import { randomFillSync } from 'node:crypto';
import type { Random } from '@meerkat/core';

/** Random numbers that nobody can guess, drawn from the system by the kilobyte. */
export class NodeRandom implements Random {
  readonly #pool = new Uint32Array(256);
  #next = this.#pool.length;

  uint32(): number {
    if (this.#next === this.#pool.length) {
      randomFillSync(this.#pool);
      this.#next = 0;
    }
    return this.#pool[this.#next++] ?? 0;
  }
}
