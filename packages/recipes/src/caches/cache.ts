import type { CallOptions } from '@meerkat/client';
import type { CacheReads } from './cached-znode.ts';
import type { CacheChanges } from './change-feed.ts';
import type { ZnodeImage } from './znode-image.ts';

export interface ChangesOptions {
  /** Starts with the whole image, reported as created. Default false. */
  readonly initial?: boolean | undefined;
}

/** Common to the three caches. */
export abstract class Cache implements AsyncDisposable {
  protected readonly image: ZnodeImage;

  protected constructor(image: ZnodeImage) {
    this.image = image;
  }

  get path(): string {
    return this.image.path;
  }

  /** Resolves when there is an image. Rejects when there never will be; the rejection need not be handled. */
  get ready(): Promise<void> {
    return this.image.ready;
  }

  /**
   * The image is the tree as it was after this txn, and all before it, had been applied. −1n before `ready`. Never
   * decreases. The image does not change during synchronous code.
   */
  get zxid(): bigint {
    return this.image.zxid;
  }

  /** True while the image is not known to be current, for a reason that may last: no connection, or no refresh yet. */
  get stale(): boolean {
    return this.image.isStale;
  }

  /** The number of reads so far. */
  get reads(): CacheReads {
    return this.image.reads;
  }

  /**
   * Resolves when the image includes everything up to a zxid: after `const { stat } = await other.set(…)`, wait for
   * `stat.mzxid`, and the cache has the write.
   */
  waitFor(zxid: bigint, options?: CallOptions): Promise<void> {
    return this.image.waitFor(zxid, options);
  }

  /**
   * The changes from now on, those of each path in order. Changes of one path that were not consumed yet are merged.
   * Ends when the cache is closed; otherwise throws what has ended it.
   *
   * @example
   * for await (const { type, path, before, after } of cache.changes()) console.log(type, path);
   */
  changes(options: ChangesOptions = {}): CacheChanges {
    return this.image.changes(options.initial === true);
  }

  /** Removes the watch. The image stays, and is stale. Never rejects. */
  close(): Promise<void> {
    return this.image.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
