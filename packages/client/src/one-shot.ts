import { type Deferred, makeQuietDeferred } from './deferred.ts';
import type { WatchEnd, WatchEvent, WatchListener } from './machine/watch-listener.ts';
import type { Watched } from './operations.ts';
import type { About } from './requester.ts';
import { makeEndError } from './watch-end.ts';

/**
 * A watch that reports one event, as a promise.
 *
 * It survives connections and sessions: it is rearmed on each of them, and a change made meanwhile is reported then.
 *
 * @example
 * const watch = new OneShotWatch((path) => path, { operation: 'get', path: '/config' });
 * await requester.request({ op: OpCode.getData, path: '/config', watch: true }, {}, about, watch);
 * console.log((await watch.changed).type);
 */
export class OneShotWatch implements WatchListener {
  /**
   * The path of the event is relative to the chroot. Rejects when the client ends; the rejection need not be handled.
   */
  readonly changed: Promise<WatchEvent>;
  readonly #relative: RelativePath;
  readonly #about: About;
  readonly #deferred: Deferred<WatchEvent> = makeQuietDeferred();

  /** @param relative removes the chroot from a path */
  constructor(relative: RelativePath, about: About = { operation: 'watch', path: null }) {
    this.#relative = relative;
    this.#about = about;
    this.changed = this.#deferred.promise;
  }

  /** Adds this watch to the result of its read. @param forget removes the watch */
  addTo<T extends object>(read: T, forget: () => void): T & Watched {
    const { changed } = this;
    // Not enumerable: it is not part of the result.
    return Object.defineProperty({ ...read, changed }, Symbol.dispose, { value: forget }) as T & Watched;
  }

  onWatchEvent(event: WatchEvent): void {
    this.#deferred.resolve(relativeEvent(this.#relative, event));
  }

  onWatchSuspended(): void {}

  onWatchRearmed(): void {}

  onWatchEnded(reason: WatchEnd): void {
    this.#deferred.reject(makeEndError(reason, this.#about));
  }
}

export type RelativePath = (path: string) => string;

/** The event with a path relative to the chroot. */
export function relativeEvent(relative: RelativePath, event: WatchEvent): WatchEvent {
  const path = relative(event.path);
  return path === event.path ? event : { ...event, path };
}
