import type { Stat } from '@meerkat/client';

/** A znode in a cache. */
export interface CachedZnode {
  readonly path: string;
  /** null when the znode holds no data, which is not the same as empty in ZooKeeper data. */
  readonly data: Uint8Array | null;
  /**
   * The fields of the data and of the creation are as of the image's zxid. `pzxid`, `cversion`, `numChildren` and
   * `aversion` are as of when the znode was read: which children exist is in the image itself.
   */
  readonly stat: Stat;
}

/** A difference between the cache, at its zxid, and what the consumer knew. */
export type CacheChange = { readonly path: string; readonly zxid: bigint } & (
  | { readonly type: 'created'; readonly before: null; readonly after: CachedZnode }
  | { readonly type: 'changed'; readonly before: CachedZnode; readonly after: CachedZnode }
  | { readonly type: 'deleted'; readonly before: CachedZnode; readonly after: null }
);

export interface CacheOptions {
  /** Closes the cache. */
  readonly signal?: AbortSignal | undefined;
  /**
   * After a lost connection the image is refreshed after a random delay of up to this many milliseconds, so that the
   * clients of a failed server do not all query its neighbours at once. Default 100.
   */
  readonly refreshSpreadMs?: number | undefined;
  /** Maximum of requests in flight, at least 1. Default 64. */
  readonly requestsMax?: number | undefined;
}

/** The number of requests that a cache has sent. */
export interface CacheReads {
  /** Znodes read with their data. */
  readonly data: number;
  /** Stats, to see whether something has changed: 80 bytes of reply, whatever the size of the data. */
  readonly stats: number;
  /** Lists of children. */
  readonly lists: number;
}
