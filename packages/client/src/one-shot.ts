import { type Deferred, makeQuietDeferred } from './deferred.ts';
import type { WatchEnd, WatchEvent, WatchListener } from './machine/watch-listener.ts';
import type { Watched } from './operations.ts';
import type { About } from './requester.ts';
import { makeEndError } from './watch-end.ts';

/**
 * A watch that tells one event, and a promise of it.
 *
 * It outlives connections and sessions: it is armed again on each of them, and what happened meanwhile is told then.
 *
 * @example
 * const watch = new OneShotWatch((path) => path, { operation: 'get', path: '/config' });
 * await requester.request({ op: OpCode.getData, path: '/config', watch: true }, {}, about, watch);
 * console.log((await watch.changed).type);
 */
export class OneShotWatch implements WatchListener {
  /** The path of the event is relative to the chroot. Rejects when the client ends; the rejection may stay unhandled. */
  readonly changed: Promise<WatchEvent>;
  readonly #relative: RelativePath;
  readonly #about: About;
  readonly #deferred: Deferred<WatchEvent> = makeQuietDeferred();

  /** @param relative takes the chroot off a path */
  constructor(relative: RelativePath, about: About = { operation: 'watch', path: null }) {
    this.#relative = relative;
    this.#about = about;
    this.changed = this.#deferred.promise;
  }

  /** What was read together with this watch. @param forget takes the watch off */
  addTo<T extends object>(read: T, forget: () => void): T & Watched {
    const { changed } = this;
    // Not enumerable: it is no part of what was read.
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

/** The event as the user's chroot shows it. */
export function relativeEvent(relative: RelativePath, event: WatchEvent): WatchEvent {
  const path = relative(event.path);
  return path === event.path ? event : { ...event, path };
}
