import type { CallOptions } from '@meerkat/client';
import type { CacheReads } from './cached-znode.ts';
import type { CacheChanges } from './change-feed.ts';
import type { ZnodeImage } from './znode-image.ts';

export interface ChangesOptions {
  /** Begins with everything that is in the image, as if it were created now. Default false. */
  readonly initial?: boolean | undefined;
}

/** What the three caches have in common. */
export abstract class Cache implements AsyncDisposable {
  protected readonly image: ZnodeImage;

  protected constructor(image: ZnodeImage) {
    this.image = image;
  }

  get path(): string {
    return this.image.path;
  }

  /** There is an image. Rejects when there never will be one; the rejection need not be handled. */
  get ready(): Promise<void> {
    return this.image.ready;
  }

  /**
   * The image is the tree as it was when this txn, and everything before it, had been applied. −1n before `ready`. Never
   * goes back. The image does not change in the midst of code that does not await.
   */
  get zxid(): bigint {
    return this.image.zxid;
  }

  /** The image is that of its zxid and of nothing newer, for a reason that may last: no connection, or no refresh yet. */
  get stale(): boolean {
    return this.image.isStale;
  }

  /** How much the service was asked since the beginning. */
  get reads(): CacheReads {
    return this.image.reads;
  }

  /**
   * Resolves when the image shows everything up to a zxid: after `const { stat } = await other.set(…)`, wait for
   * `stat.mzxid`, and the cache has it.
   */
  waitFor(zxid: bigint, options?: CallOptions): Promise<void> {
    return this.image.waitFor(zxid, options);
  }

  /**
   * The changes from now on, of each path in order. Several changes of a path that were not taken yet are one. Ends when the
   * cache is closed; throws what has ended it otherwise.
   *
   * @example
   * for await (const { type, path, before, after } of cache.changes()) console.log(type, path);
   */
  changes(options: ChangesOptions = {}): CacheChanges {
    return this.image.changes(options.initial === true);
  }

  /** Takes the watch off. What is in the image stays, and is stale. Never rejects. */
  close(): Promise<void> {
    return this.image.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
