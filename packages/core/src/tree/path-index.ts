/**
 * Finds a znode's number by its path: open addressing in typed arrays, divided into shards.
 *
 *     hash of the path, 32 bits ─┬─ high 8: shard
 *                                └─ low bits: first slot;   slot := int hash, int number (0 = empty), linear probing
 *
 * The paths themselves are stored with the znodes; the index compares one only when all 32 bits are equal. So a lookup
 * touches one slot and one znode, that of an absent path only the slot, and an entry costs 11 to 21 bytes. The Maps
 * from string to number that preceded this cost 28 to 56 bytes per entry, five cache misses per lookup (0.8 µs instead
 * of 0.4 among a million paths) and work for the garbage collector; and a single one throws near 16.7 million entries.
 *
 * Only one shard grows at a time, from its stored hashes: with 17 million paths a shard has 66,000, well under 1 ms.
 */
import { assert } from '../base/assert.ts';

/** Where the paths are. */
export interface PathSource {
  /** True when this number has this path. */
  hasPath(number: number, path: string): boolean;
  /** The same for a path in ASCII, bytes[start, end). */
  hasPathBytes(number: number, bytes: Uint8Array, start: number, end: number): boolean;
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
  /** The result of `fetch`, which is not used: without it the compiler would remove the loop. */
  fetched = 0;

  constructor(source: PathSource) {
    this.#source = source;
    // One allocation while they are small: 256 separate ones would dominate the cost of an empty tree.
    const slots = new Int32Array(SHARDS * 2 * SLOTS_MIN);
    for (let i = 0; i < SHARDS; i++) this.#shards.push(slots.subarray(i * 2 * SLOTS_MIN, (i + 1) * 2 * SLOTS_MIN));
  }

  get size(): number {
    return this.#size;
  }

  /** The number stored under a path, 0 for none. `hash` is its `hashOf`. */
  get(hash: number, path: string): number {
    const slots = this.#shards[hash >>> (32 - SHARD_BITS)]!;
    const mask = slots.length - 1;
    for (let at = (hash << 1) & mask; ; at = (at + 2) & mask) {
      const number = slots[at + 1]!;
      if (number === 0 || (slots[at] === hash && this.#source.hasPath(number, path))) return number;
    }
  }

  /** The number stored under a path in ASCII, 0 for none. */
  getBytes(hash: number, bytes: Uint8Array, start: number, end: number): number {
    const slots = this.#shards[hash >>> (32 - SHARD_BITS)]!;
    const mask = slots.length - 1;
    for (let at = (hash << 1) & mask; ; at = (at + 2) & mask) {
      const number = slots[at + 1]!;
      if (number === 0 || (slots[at] === hash && this.#source.hasPathBytes(number, bytes, start, end))) return number;
    }
  }

  /** Touches the first slots of hashes[0 … count), so that they are in the processor's cache when they are needed. */
  fetch(hashes: Int32Array, count: number): void {
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const hash = hashes[i]!;
      const slots = this.#shards[hash >>> (32 - SHARD_BITS)]!;
      sum ^= slots[(hash << 1) & (slots.length - 1)]!;
    }
    this.fetched = sum;
  }

  /** Stores a number from 1 to 2**31 − 1 under the hash of a path that is not stored yet. */
  add(hash: number, number: number): void {
    const shard = hash >>> (32 - SHARD_BITS);
    let slots = this.#shards[shard]!;
    // At most three quarters of the slots are in use; there are half as many slots as ints.
    if (++this.#sizes[shard]! > (slots.length * 3) >> 3) slots = this.#grow(shard);
    put(slots, hash, number);
    this.#size++;
  }

  /** Deletes a number that was stored under this hash. */
  delete(hash: number, number: number): void {
    const shard = hash >>> (32 - SHARD_BITS);
    const slots = this.#shards[shard]!;
    const mask = slots.length - 1;
    let hole = (hash << 1) & mask;
    while (slots[hole + 1] !== number) {
      assert(slots[hole + 1] !== 0, 'a deleted path is in the index');
      hole = (hole + 2) & mask;
    }
    // Entries after the hole move up, unless that would put them before their first slot.
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

/** A signed 32-bit hash: two characters per step, then a mix in which each bit depends on all input bits. */
export function hashOf(path: string): number {
  const length = path.length;
  let hash = length;
  let i = 0;
  for (; i + 1 < length; i += 2) hash = step(hash, path.charCodeAt(i), path.charCodeAt(i + 1));
  return finish(i < length ? step(hash, path.charCodeAt(i), 0) : hash);
}

/** True when bytes [start, end) are ASCII. */
export function isAscii(bytes: Uint8Array, start: number, end: number): boolean {
  let seen = 0;
  for (let i = start; i < end; i++) seen |= bytes[i]!;
  return seen < 0x80;
}

/** The hash of a path in ASCII from its bytes. */
export function hashOfBytes(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  let i = start;
  for (; i + 1 < end; i += 2) hash = step(hash, bytes[i]!, bytes[i + 1]!);
  return finish(i < end ? step(hash, bytes[i]!, 0) : hash);
}

function step(hash: number, first: number, second: number): number {
  const mixed = Math.imul(hash ^ first ^ (second << 16), 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

function finish(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

function put(slots: Int32Array, hash: number, number: number): void {
  const mask = slots.length - 1;
  let at = (hash << 1) & mask;
  while (slots[at + 1] !== 0) at = (at + 2) & mask;
  slots[at] = hash;
  slots[at + 1] = number;
}
