/**
 * Random numbers that one seed decides: the generator sfc32 (Chris Doty-Humphrey), 128 bits of state, additions and
 * shifts only, so that every machine draws the same.
 *
 * Each part of a simulated world draws from a fork of its own: a part that draws once more does not change what the
 * others see, which keeps a shrunk or extended schedule close to the one that failed.
 */
export class SeededRandom {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, label = '') {
    const mixed = hashOf(label);
    this.#a = seed | 0;
    this.#b = Math.floor(seed / 2 ** 32) | 0;
    this.#c = mixed | 0;
    for (let i = 0; i < WARM_UP_DRAWS; i++) this.uint32();
  }

  /** 0 … 2**32 − 1. */
  uint32(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    this.#c |= 0;
    return sum >>> 0;
  }

  /** A generator that depends on this one's state and on the label, and on nothing drawn later. */
  fork(label: string): SeededRandom {
    return new SeededRandom(this.uint32() * 2 ** 21 + (this.uint32() >>> 11), label);
  }

  /** From 0 up to, and without, 1. */
  fraction(): number {
    return this.uint32() / 2 ** 32;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.fraction() * (max - min + 1));
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** One of the items; there must be one. */
  pick<T>(items: readonly T[]): T {
    return items[this.between(0, items.length - 1)]!;
  }
}

/** Draws after which the state no longer shows how alike two seeds were. */
const WARM_UP_DRAWS = 12;

/** FNV-1a over UTF-16 code units. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
}
