import { randomFillSync } from 'node:crypto';
import type { Random } from '@meerkat/core';

/** Cryptographically secure random numbers, read from the system a kilobyte at a time. */
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
