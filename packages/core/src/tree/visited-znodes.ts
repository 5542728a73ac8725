import type { ZnodeNumber } from './znode-rows.ts';

/** The znodes that a walk has visited: one bit per number, in pages allocated on demand. */
export class VisitedZnodes {
  readonly #pages: (Uint8Array | undefined)[] = [];

  has(z: ZnodeNumber): boolean {
    const page = this.#pages[z >> PAGE_SHIFT];
    return page !== undefined && (page[(z & PAGE_MASK) >> 3]! & (1 << (z & 7))) !== 0;
  }

  add(z: ZnodeNumber): void {
    const index = z >> PAGE_SHIFT;
    let page = this.#pages[index];
    if (page === undefined) {
      page = new Uint8Array(PAGE_ZNODES >> 3);
      this.#pages[index] = page;
    }
    page[(z & PAGE_MASK) >> 3]! |= 1 << (z & 7);
  }
}

const PAGE_SHIFT = 15;
const PAGE_ZNODES = 1 << PAGE_SHIFT;
const PAGE_MASK = PAGE_ZNODES - 1;
