import type { Client } from '@meerkat/client';
import { Cache } from './cache.ts';
import type { CachedZnode, CacheOptions } from './cached-znode.ts';
import { ZnodeImage } from './znode-image.ts';

/**
 * One znode, kept up to date in memory, also while it does not exist.
 *
 * @example
 * await using cache = new NodeCache(client, '/config');
 * await cache.ready;
 * console.log(cache.get()?.data);
 */
export class NodeCache extends Cache {
  constructor(client: Client, path: string, options?: CacheOptions) {
    super(new ZnodeImage(client, path, { depthMax: 0, includes: () => true }, options));
  }

  /** The znode at `zxid`; null when there was none. */
  get(): CachedZnode | null {
    return this.image.znodes.get(this.path) ?? null;
  }
}
