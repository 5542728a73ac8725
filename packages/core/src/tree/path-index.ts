import { assert } from '../assert.ts';

/**
 * Finds a znode's number by its path.
 *
 * Many small Maps instead of one: a Map throws near 16.7 million entries, and one that grows copies itself in a single
 * go, a pause of about 50 ns per entry. With 1024 shards, 17 million paths are 17,000 a shard and a pause under 1 ms.
 *
 * A shard is chosen from the last eight characters, where sequential names differ, and from characters spread over the
 * rest, so that `/users/1/settings` and `/users/2/settings` do not all meet in one shard.
 */
export class PathIndex {
  readonly #shards: Map<string, number>[] = [];
  #size = 0;

  constructor() {
    for (let i = 0; i < SHARDS; i++) this.#shards.push(new Map());
  }

  get size(): number {
    return this.#size;
  }

  /** The number stored under a path, 0 when there is none. */
  get(path: string): number {
    return this.#shards[shardOf(path)]!.get(path) ?? 0;
  }

  /** Stores a number ≥ 1 under a path that has none yet. */
  add(path: string, number: number): void {
    const shard = this.#shards[shardOf(path)]!;
    const size = shard.size;
    shard.set(path, number);
    assert(shard.size === size + 1, 'a path is added to the index once');
    this.#size++;
  }

  delete(path: string): void {
    const wasThere = this.#shards[shardOf(path)]!.delete(path);
    assert(wasThere, 'a path that leaves the index is in it');
    this.#size--;
  }
}

const SHARDS = 1024;

function shardOf(path: string): number {
  const length = path.length;
  const tail = length > 8 ? length - 8 : 0;
  let hash = length;
  for (let i = tail; i < length; i++) hash = (Math.imul(hash, 31) + path.charCodeAt(i)) | 0;
  // Every character of a short path, about sixteen of a long one; an odd step does not fall in with regular names.
  const step = (tail >> 4) | 1;
  for (let i = 1; i < tail; i += step) hash = (Math.imul(hash, 31) + path.charCodeAt(i)) | 0;
  return (Math.imul(hash, 0x9e3779b1) >>> 22) & (SHARDS - 1);
}
