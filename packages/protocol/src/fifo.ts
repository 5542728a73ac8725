/**
 * A queue in a ring that doubles when it is full.
 *
 *     ring:   . . c d e f . .        length is a power of two, so that positions wrap by a mask
 *                 ▲       ▲
 *               head     tail
 *
 * Removed items are no longer referenced. That matters: objects that a queue keeps slightly too long survive the young
 * generation's collections, and copying them cost a third of a write's CPU time.
 */
export class Fifo<T> {
  #ring: (T | undefined)[] = new Array<T | undefined>(LENGTH_MIN).fill(undefined);
  #head = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(item: T): void {
    if (this.#length === this.#ring.length) this.#grow();
    this.#ring[(this.#head + this.#length) & (this.#ring.length - 1)] = item;
    this.#length++;
  }

  /** The oldest item. */
  peek(): T | undefined {
    return this.#ring[this.#head];
  }

  /** Removes and returns the oldest item. */
  shift(): T | undefined {
    if (this.#length === 0) return undefined;
    const item = this.#ring[this.#head];
    this.#ring[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#ring.length - 1);
    this.#length--;
    return item;
  }

  /** Removes and returns all items, oldest first. */
  takeAll(): T[] {
    const items: T[] = [];
    for (let item = this.shift(); item !== undefined; item = this.shift()) items.push(item);
    return items;
  }

  /** From the oldest to the newest. */
  *[Symbol.iterator](): IterableIterator<T> {
    for (let i = 0; i < this.#length; i++) yield this.#ring[(this.#head + i) & (this.#ring.length - 1)]!;
  }

  /** Removes the newest `count` items. */
  dropNewest(count: number): void {
    for (let i = 0; i < count; i++) {
      this.#length--;
      this.#ring[(this.#head + this.#length) & (this.#ring.length - 1)] = undefined;
    }
  }

  #grow(): void {
    const old = this.#ring;
    const ring = new Array<T | undefined>(old.length * 2).fill(undefined);
    for (let i = 0; i < this.#length; i++) ring[i] = old[(this.#head + i) & (old.length - 1)];
    this.#ring = ring;
    this.#head = 0;
  }
}

const LENGTH_MIN = 16;
