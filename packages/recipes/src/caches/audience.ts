import type { Attempt } from '../kernel/attempt.ts';
import type { CachedZnode } from './cached-znode.ts';
import { ChangeFeed } from './change-feed.ts';
import type { Difference } from './timeline.ts';

/** The subscribers of an image: consumers of its changes, and callers that wait for the next publication. */
export class Audience {
  readonly #feeds: Set<ChangeFeed> = new Set();
  /** Called at the next publication or at the end. */
  readonly #waiting: Set<() => void> = new Set();
  /** How the image ended; undefined while it has not. */
  #end: Error | null | undefined = undefined;

  /**
   * @param current what is there now
   * @param zxid of the image now
   */
  follow(current: (path: string) => CachedZnode | null, zxid: () => bigint): ChangeFeed {
    const feed = new ChangeFeed(current, zxid, (closed) => this.#feeds.delete(closed));
    if (this.#end === undefined) this.#feeds.add(feed);
    else feed.end(this.#end);
    return feed;
  }

  /** Resolves at the next publication or at the end, after `delayMs` at the latest. */
  async next(attempt: Attempt, delayMs: number): Promise<void> {
    let wake = (): void => {};
    const published = new Promise<void>((resolve) => {
      wake = resolve;
      this.#waiting.add(resolve);
    });
    await attempt.any([published], { delayMs }).finally(() => this.#waiting.delete(wake));
  }

  notify(differences: readonly Difference<CachedZnode>[]): void {
    for (const feed of this.#feeds) if (differences.length > 0) feed.push(differences);
    this.#wake();
  }

  /** @param error null: closed by the user */
  end(error: Error | null): void {
    this.#end = error;
    for (const feed of this.#feeds) feed.end(error);
    this.#feeds.clear();
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }
}
