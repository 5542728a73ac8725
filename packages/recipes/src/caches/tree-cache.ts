import type { Client } from '@meerkat/client';
import { checkLimit } from '../kernel/bounds.ts';
import { Cache } from './cache.ts';
import type { CachedZnode, CacheOptions } from './cached-znode.ts';
import { ZnodeImage } from './znode-image.ts';

export interface TreeCacheOptions extends CacheOptions {
  /** Number of levels below the root, at least 1. Default: all. */
  readonly depthMax?: number | undefined;
  /** Whether a znode, with its subtree, belongs to the cache. The root always does. Default: all do. */
  readonly includes?: ((path: string) => boolean) | undefined;
}

/**
 * A znode with everything below it, as it was at one zxid.
 *
 * @example
 * await using services = new TreeCache(client, '/services');
 * await services.ready;
 * for (const name of services.children('/services') ?? []) console.log(services.get(`/services/${name}`)?.data);
 */
export class TreeCache extends Cache {
  constructor(client: Client, path: string, options: TreeCacheOptions = {}) {
    const { depthMax = Number.POSITIVE_INFINITY, includes = () => true } = options;
    checkLimit('depthMax', depthMax);
    super(new ZnodeImage(client, path, { depthMax, includes }, options));
  }

  /** Znodes in the image. */
  get size(): number {
    return this.image.znodes.size;
  }

  /** A znode by its path; null when there was none. */
  get(path: string): CachedZnode | null {
    return this.image.znodes.get(path) ?? null;
  }

  /** The names of a znode's children, sorted; null when the znode was missing. */
  children(path: string): string[] | null {
    return this.image.children(path);
  }

  /** All znodes, in no particular order. Do not iterate across an await: the image changes. */
  znodes(): IterableIterator<CachedZnode> {
    return this.image.znodes.values();
  }
}
