import { type Children, type Client, NoNodeError, nullableBytes, type Stat } from '@meerkat/client';
import type { CachedZnode, CacheReads } from './cached-znode.ts';

/** The reads of a cache, counted. null: there is no such znode. */
export class CountedReads {
  readonly #client: Client;
  readonly #counts = { data: 0, stats: 0, lists: 0 };

  constructor(client: Client) {
    this.#client = client;
  }

  get counts(): CacheReads {
    return { ...this.#counts };
  }

  async data(path: string): Promise<CachedZnode | null> {
    this.#counts.data++;
    try {
      const { data, stat } = await this.#client.get(path, { codec: nullableBytes });
      return { path, data, stat };
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      throw error;
    }
  }

  stat(path: string): Promise<Stat | null> {
    this.#counts.stats++;
    return this.#client.exists(path);
  }

  async list(path: string): Promise<Children | null> {
    this.#counts.lists++;
    try {
      return await this.#client.children(path);
    } catch (error) {
      if (error instanceof NoNodeError) return null;
      throw error;
    }
  }
}
