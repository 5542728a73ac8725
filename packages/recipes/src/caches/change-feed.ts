import type { CacheChange, CachedZnode } from './cached-znode.ts';
import type { Difference } from './timeline.ts';

/** Without the second type parameter of AsyncIterableIterator, which only TypeScript 5.6 and later have. */
export type CacheChanges = AsyncIterator<CacheChange, undefined> & AsyncIterable<CacheChange>;

/**
 * The changes of an image for one consumer. A slow consumer gets the changes of a path merged, from what it saw last to
 * the current value: at most one change per path is queued, and a znode that was created and deleted again is not
 * reported.
 */
export class ChangeFeed implements AsyncIterator<CacheChange, undefined>, AsyncIterable<CacheChange> {
  readonly #current: (path: string) => CachedZnode | null;
  readonly #zxid: () => bigint;
  readonly #onClosed: (feed: ChangeFeed) => void;
  /** What the consumer knows of the paths that differ now, in the order in which they began to differ. */
  readonly #before: Map<string, CachedZnode | null> = new Map();
  #waiting: (() => void)[] = [];
  #isOver = false;
  /** Thrown once, after the queued changes. */
  #error: Error | null = null;

  /**
   * @param current what is there now
   * @param zxid of the image now
   */
  constructor(current: (path: string) => CachedZnode | null, zxid: () => bigint, onClosed: (feed: ChangeFeed) => void) {
    this.#current = current;
    this.#zxid = zxid;
    this.#onClosed = onClosed;
  }

  push(differences: Iterable<Difference<CachedZnode>>): void {
    for (const { path, before, after } of differences) {
      const known = this.#before.get(path);
      if (known === undefined) this.#before.set(path, before);
      // Created and deleted again: kept, there would be one entry for every name that ever existed.
      else if (known === null && after === null) this.#before.delete(path);
    }
    this.#wake();
  }

  /** Nothing is pushed after this. */
  end(error: Error | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#error = error;
    this.#wake();
  }

  async next(): Promise<IteratorResult<CacheChange, undefined>> {
    for (;;) {
      const change = this.#take();
      if (change !== null) return { done: false, value: change };
      if (this.#isOver) {
        const error = this.#error;
        this.#error = null;
        if (error !== null) throw error;
        return { done: true, value: undefined };
      }
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  }

  return(): Promise<IteratorResult<CacheChange, undefined>> {
    this.#before.clear();
    this.end(null);
    this.#onClosed(this);
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #take(): CacheChange | null {
    for (const [path, before] of this.#before) {
      this.#before.delete(path);
      const after = this.#current(path);
      const zxid = this.#zxid();
      if (before === null && after !== null) return { type: 'created', path, before, after, zxid };
      if (before !== null && after === null) return { type: 'deleted', path, before, after, zxid };
      if (before !== null && after !== null) return { type: 'changed', path, before, after, zxid };
    }
    return null;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
