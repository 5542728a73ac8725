/**
 * A map with string keys for many entries. A single map of a million entries blocks for a tenth of a second when it
 * grows or shrinks; the shards of this one do so one at a time.
 */
export class ShardedMap<V> {
  /** A single map while there are few entries; later always all shards. */
  #shards: Map<string, V>[] = [new Map()];

  get size(): number {
    return this.#shards.reduce((sum, { size }) => sum + size, 0);
  }

  get(key: string): V | undefined {
    return this.#shardOf(key).get(key);
  }

  set(key: string, value: V): void {
    const shard = this.#shardOf(key);
    shard.set(key, value);
    if (this.#shards.length === 1 && shard.size > WHOLE_MAX) this.#split(shard);
  }

  delete(key: string): void {
    this.#shardOf(key).delete(key);
  }

  *entries(): IterableIterator<[string, V]> {
    for (const shard of this.#shards) yield* shard;
  }

  #split(whole: ReadonlyMap<string, V>): void {
    this.#shards = Array.from({ length: SHARDS }, () => new Map<string, V>());
    for (const [key, value] of whole) this.#shardOf(key).set(key, value);
  }

  #shardOf(key: string): Map<string, V> {
    return this.#shards.length === 1 ? this.#shards[0]! : this.#shards[shardIndexOf(key)]!;
  }
}

/** A power of two. */
const SHARDS = 64;
/** Entries up to which it is a single map: that many are moved in a fraction of a millisecond. */
const WHOLE_MAX = 1024;

/** Computed from the end of a key, where paths of one tree differ. */
function shardIndexOf(key: string): number {
  const last = key.length - 1;
  const mixed = (key.charCodeAt(last) * 31 + key.charCodeAt(last - 1)) * 31 + key.charCodeAt(last - 2);
  return (mixed + key.length) & (SHARDS - 1);
}
