import { type Client, joinPath } from '@meerkat/client';
import { Cache } from './cache.ts';
import type { CachedZnode, CacheOptions } from './cached-znode.ts';
import { ZnodeImage } from './znode-image.ts';

/**
 * The children of a znode with their data, and the znode itself. The watch receives events of the whole subtree:
 * unsuitable for the top of a large tree whose lower levels change often.
 *
 * @example
 * await using members = new ChildrenCache(client, '/members');
 * await members.ready;
 * for (const name of members.names()) console.log(name, members.get(name)?.data);
 */
export class ChildrenCache extends Cache {
  constructor(client: Client, path: string, options?: CacheOptions) {
    super(new ZnodeImage(client, path, { depthMax: 1, includes: () => true }, options));
  }

  /** A child by its name; null when there was none. */
  get(name: string): CachedZnode | null {
    return this.image.znodes.get(joinPath(this.path, name)) ?? null;
  }

  /** The parent; null when it was missing. */
  get parent(): CachedZnode | null {
    return this.image.znodes.get(this.path) ?? null;
  }

  /** Sorted. Empty also while the parent is missing. */
  names(): string[] {
    return this.image.children(this.path) ?? [];
  }
}
