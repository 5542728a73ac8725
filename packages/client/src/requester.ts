import type { Request } from '@meerkat/protocol';
import type { WatchListener } from './machine/watch-listener.ts';

/** What every operation takes. */
export interface CallOptions {
  /** Aborted: the promise rejects with an AbortedError. A request that was sent may still take effect. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Milliseconds until the promise rejects with a TimeoutError. A request that was sent may still take effect. NaN is refused
   * with a RangeError.
   */
  readonly timeoutMs?: number | undefined;
}

/** How fresh a read must be. */
export type ReadConsistency = 'local' | 'linearizable';

export interface ReadOptions extends CallOptions {
  /**
   * 'local' (the default): what the connected server has, which may lag behind. 'linearizable': a sync goes before the
   * read in the same round trip, so that it shows everything that was acknowledged to any client before it was asked.
   */
  readonly read?: ReadConsistency | undefined;
}

/** What a request is about, for errors and traces. */
export interface About {
  readonly operation: string;
  /** As the user wrote it, without the chroot. */
  readonly path: string | null;
}

/** A persistent watch that stands. */
export interface WatchHandle {
  /** Removes the listener, and the server's watch when no other listener needs it. Never rejects. */
  close(): Promise<void>;
}

/** The door through which the parts of this package reach the session. */
export interface Requester {
  /** Adds the chroot. @throws BadArgumentsError for a path that no znode can have */
  absolute(path: string, operation: string): string;
  /** Takes the chroot off. */
  relative(path: string): string;
  /**
   * Sends a request with absolute paths; a read may ask to be linearizable.
   *
   * @returns what `readReply` makes of the reply; rejects with a ZooKeeperError
   */
  request<T>(request: Request, options: ReadOptions | undefined, about: About, listener?: WatchListener): Promise<T>;
  /** Arms a persistent watch at an absolute path. */
  addWatch(
    path: string,
    isRecursive: boolean,
    listener: WatchListener,
    options: CallOptions | undefined,
    about: About,
  ): Promise<WatchHandle>;
}
