/** Reproducible random numbers (xorshift32): the same seed gives the same script on every machine. */
export class Random {
  #state: number;

  constructor(seed: number) {
    // The state must not be 0; the multiplication spreads adjacent seeds.
    this.#state = (Math.imul(seed, 0x9e3779b1) ^ 0x85ebca6b) | 1;
    for (let i = 0; i < 8; i++) this.uint32();
  }

  uint32(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return x >>> 0;
  }

  /** An integer in [0, bound). */
  below(bound: number): number {
    return this.uint32() % bound;
  }

  /** True with probability 1 / `times`. */
  oneIn(times: number): boolean {
    return this.below(times) === 0;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error('there is nothing to pick from');
    return item;
  }

  /** Picks a key by weight. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const entries = Object.entries<number>(weights);
    let left = this.below(entries.reduce((sum, [, weight]) => sum + weight, 0));
    for (const [key, weight] of entries) {
      if (left < weight) return key as K;
      left -= weight;
    }
    throw new Error('weights must be positive');
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)));
  }
}
