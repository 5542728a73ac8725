import type { Request } from '@meerkat/protocol';
import type { WatchListener } from './machine/watch-listener.ts';

/** Options of every operation. */
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
   * 'local' (the default): the state of the connected server, which may lag behind. 'linearizable': a sync precedes the
   * read in the same round trip, so that it shows everything that was acknowledged to any client before the call.
   */
  readonly read?: ReadConsistency | undefined;
}

/** The subject of a request, for errors and traces. */
export interface About {
  readonly operation: string;
  /** The user's path, without the chroot. */
  readonly path: string | null;
}

/** An armed persistent watch. */
export interface WatchHandle {
  /** Removes the listener, and the server's watch when no other listener needs it. Never rejects. */
  close(): Promise<void>;
}

/** The interface through which the parts of this package use the session. */
export interface Requester {
  /** Adds the chroot. @throws BadArgumentsError for an invalid path */
  absolute(path: string, operation: string): string;
  /** Removes the chroot. */
  relative(path: string): string;
  /**
   * Sends a request with absolute paths; a read may be linearizable.
   *
   * @returns the result of `readReply`; rejects with a ZooKeeperError
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
