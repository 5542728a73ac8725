/**
 * Finds a znode's number by its path: open addressing in typed arrays, divided into shards.
 *
 *     hash of the path, 32 bits ─┬─ high 8: shard
 *                                └─ low bits: first slot;   slot := int hash, int number (0 = empty), linear probing
 *
 * The paths themselves are kept where the znodes are; the index asks for one only when all 32 bits agree. So a look-up
 * touches one slot and one string, an absent path the slot alone, and an entry costs 11 to 21 bytes. A Map from string
 * to number, which this was at first, costs 28 to 56 bytes, five cache misses a look-up (0.8 µs instead of 0.3 among a
 * million), work for the garbage collector, and throws near 16.7 million entries.
 *
 * Only one shard grows at a time, from the hashes it holds: with 17 million paths a shard has 66,000, well under 1 ms.
 */
import { assert } from '../assert.ts';

/** Where the paths are. */
export interface PathSource {
  pathOf(number: number): string;
}

const SHARD_BITS = 8;
const SHARDS = 1 << SHARD_BITS;
const SLOTS_MIN = 64;

export class PathIndex {
  readonly #source: PathSource;
  readonly #shards: Int32Array[] = [];
  /** Entries of each shard. */
  readonly #sizes: Int32Array = new Int32Array(SHARDS);
  #size = 0;
  /** The path looked at last and its hash: a path is looked for before it is added. */
  #path = '';
  #hash: number = hashOf('');

  constructor(source: PathSource) {
    this.#source = source;
    for (let i = 0; i < SHARDS; i++) this.#shards.push(new Int32Array(2 * SLOTS_MIN));
  }

  get size(): number {
    return this.#size;
  }

  /** The number stored under a path, 0 when there is none. */
  get(path: string): number {
    const hash = hashOf(path);
    this.#path = path;
    this.#hash = hash;
    const slots = this.#shards[hash >>> (32 - SHARD_BITS)]!;
    const mask = slots.length - 1;
    for (let at = (hash << 1) & mask; ; at = (at + 2) & mask) {
      const number = slots[at + 1]!;
      if (number === 0) return 0;
      if (slots[at] === hash && this.#source.pathOf(number) === path) return number;
    }
  }

  /** Stores a number from 1 to 2**31 − 1 under a path that has none yet; the source knows it already. */
  add(path: string, number: number): void {
    const hash = path === this.#path ? this.#hash : hashOf(path);
    const shard = hash >>> (32 - SHARD_BITS);
    let slots = this.#shards[shard]!;
    // At most three quarters of the slots are in use; there are half as many slots as ints.
    if (++this.#sizes[shard]! > (slots.length * 3) >> 3) slots = this.#grow(shard);
    put(slots, hash, number);
    this.#size++;
  }

  /** Forgets a path while the source still knows it. */
  delete(path: string): void {
    const hash = hashOf(path);
    const shard = hash >>> (32 - SHARD_BITS);
    const slots = this.#shards[shard]!;
    const mask = slots.length - 1;
    let hole = (hash << 1) & mask;
    while (slots[hole] !== hash || this.#source.pathOf(slots[hole + 1]!) !== path) {
      assert(slots[hole + 1] !== 0, 'a path that leaves the index is in it');
      hole = (hole + 2) & mask;
    }
    // Entries behind the hole move up, unless that would put them before their first slot.
    for (let at = (hole + 2) & mask; slots[at + 1] !== 0; at = (at + 2) & mask) {
      const first = (slots[at]! << 1) & mask;
      if (((at - first) & mask) < ((at - hole) & mask)) continue;
      slots[hole] = slots[at]!;
      slots[hole + 1] = slots[at + 1]!;
      hole = at;
    }
    slots[hole] = 0;
    slots[hole + 1] = 0;
    this.#sizes[shard]!--;
    this.#size--;
  }

  #grow(shard: number): Int32Array {
    const old = this.#shards[shard]!;
    const slots = new Int32Array(old.length * 2);
    for (let at = 0; at < old.length; at += 2) {
      const number = old[at + 1]!;
      if (number !== 0) put(slots, old[at]!, number);
    }
    this.#shards[shard] = slots;
    return slots;
  }
}

function put(slots: Int32Array, hash: number, number: number): void {
  const mask = slots.length - 1;
  let at = (hash << 1) & mask;
  while (slots[at + 1] !== 0) at = (at + 2) & mask;
  slots[at] = hash;
  slots[at + 1] = number;
}

/** Two characters a step, then a mix in which every bit of the result depends on every bit before it. */
function hashOf(path: string): number {
  const length = path.length;
  let hash = length;
  let i = 0;
  for (; i + 1 < length; i += 2) {
    hash = Math.imul(hash ^ path.charCodeAt(i) ^ (path.charCodeAt(i + 1) << 16), 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  if (i < length) hash = Math.imul(hash ^ path.charCodeAt(i), 0x9e3779b1);
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
