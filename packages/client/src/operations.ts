/** Arguments and results of a client's operations, besides those that the session machine reads from replies. */
import type { Acl } from '@meerkat/protocol';
import type { WatchEvent } from './machine/watch-listener.ts';
import type { CallOptions } from './requester.ts';

/** How long a znode lives, unless it is deleted. */
export type ZnodeMode =
  /** Forever. */
  | 'persistent'
  /** As long as the session that creates it. */
  | 'ephemeral'
  /** As long as it has children: the service deletes it some time after the last of them. */
  | 'container';

export interface CreateOptions extends CallOptions {
  /** Default 'persistent'. */
  readonly mode?: ZnodeMode | undefined;
  /** Appends a number of ten digits to the path, larger than that of every sibling created before. Default false. */
  readonly sequential?: boolean | undefined;
  /**
   * The service deletes the znode when it has had no children and no change for this many milliseconds. Persistent
   * only.
   */
  readonly ttlMs?: number | undefined;
  /** The ACL. Default: all permissions for anyone. */
  readonly acl?: readonly Acl[] | undefined;
}

/** The version that an operation of a transaction expects. */
export interface ExpectedVersion {
  /** Default: any. */
  readonly version?: number | undefined;
}

/** The version that a change expects. */
export interface VersionOptions extends CallOptions {
  /** The change is refused with BadVersionError when the znode has another version. Default: any. */
  readonly version?: number | undefined;
}

/**
 * A read with a watch. A caller that stops waiting, for instance after a timeout, should dispose it; otherwise its
 * listener is kept until the znode changes:
 *
 * @example
 * using found = await client.exists('/ready', { watch: true });
 * if (found.stat === null) await Promise.race([found.changed, timeout]);
 */
export interface Watched extends Disposable {
  /**
   * Resolves with the first change after the read. Survives reconnects and new sessions. Rejects with a ClosedError or
   * AuthFailedError when the client ends; the rejection need not be handled.
   */
  readonly changed: Promise<WatchEvent>;
  /** Removes the watch: `changed` is no longer settled. The server keeps its own, whose event is dropped. */
  [Symbol.dispose](): void;
}

/** The watches for `checkWatches` and `removeWatches`. 'persistent' and 'recursive' need a server of 3.9 or newer. */
export type WatchSelection = 'children' | 'data' | 'any' | 'persistent' | 'recursive';

export interface ReconfigOptions extends CallOptions {
  /** Servers to add or change, as `server.N=…` lines. */
  readonly joining?: readonly string[] | undefined;
  /** Ids of servers to remove. */
  readonly leaving?: readonly number[] | undefined;
  /** The whole new membership, instead of `joining` and `leaving`. */
  readonly members?: readonly string[] | undefined;
  /** The required version of the current configuration. */
  readonly fromVersion?: bigint | undefined;
}
