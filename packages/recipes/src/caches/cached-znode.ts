import type { Stat } from '@meerkat/client';

/** A znode as a cache has it. */
export interface CachedZnode {
  readonly path: string;
  /** null when the znode holds no data, which is not the same as empty in ZooKeeper data. */
  readonly data: Uint8Array | null;
  /**
   * What belongs to the data and to the creation is that of the image's zxid. `pzxid`, `cversion`, `numChildren` and
   * `aversion` are as they were when the znode was read: which children there are, the image itself knows.
   */
  readonly stat: Stat;
}

/** What is different in a cache, at its zxid, from what the consumer knew. */
export type CacheChange = { readonly path: string; readonly zxid: bigint } & (
  | { readonly type: 'created'; readonly before: null; readonly after: CachedZnode }
  | { readonly type: 'changed'; readonly before: CachedZnode; readonly after: CachedZnode }
  | { readonly type: 'deleted'; readonly before: CachedZnode; readonly after: null }
);

export interface CacheOptions {
  /** Aborted: the cache is closed. */
  readonly signal?: AbortSignal | undefined;
  /**
   * After a lost connection the image is brought up to date after a random time of up to so many milliseconds, so that
   * the clients of a server that went away do not all ask its neighbours at once. Default 100.
   */
  readonly refreshSpreadMs?: number | undefined;
  /** Requests that are in flight at once, at least 1. Default 64. */
  readonly requestsMax?: number | undefined;
}

/** How much a cache has asked the service. */
export interface CacheReads {
  /** Znodes read with their data. */
  readonly data: number;
  /** Stats, to see whether something has changed: 80 bytes of reply, whatever the znode holds. */
  readonly stats: number;
  /** Lists of children. */
  readonly lists: number;
}
