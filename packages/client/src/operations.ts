/** What the operations of a client take and give, besides what the session machine reads from replies. */
import type { Acl } from '@meerkat/protocol';
import type { WatchEvent } from './machine/watch-listener.ts';
import type { CallOptions } from './requester.ts';

/** What a znode lives as long as, besides until it is deleted. */
export type ZnodeMode =
  /** Nothing. */
  | 'persistent'
  /** The session that creates it. */
  | 'ephemeral'
  /** Its children: the service deletes it some time after the last of them. */
  | 'container';

export interface CreateOptions extends CallOptions {
  /** Default 'persistent'. */
  readonly mode?: ZnodeMode | undefined;
  /** Appends a number of ten digits to the path, larger than that of every sibling created before. Default false. */
  readonly sequential?: boolean | undefined;
  /** The service deletes the znode when it has had no children and no change for so many milliseconds. Persistent only. */
  readonly ttlMs?: number | undefined;
  /** Who may do what. Default: all permissions for anyone. */
  readonly acl?: readonly Acl[] | undefined;
}

/** Which version an operation of a transaction expects. */
export interface ExpectedVersion {
  /** Default: any. */
  readonly version?: number | undefined;
}

/** Which version a change is made to. */
export interface VersionOptions extends CallOptions {
  /** The change is refused with BadVersionError when the znode has another version. Default: any. */
  readonly version?: number | undefined;
}

/**
 * A read that leaves a watch. A caller that stops waiting, after a time limit say, should dispose of it; otherwise what belongs to
 * it is kept until the znode changes:
 *
 * @example
 * using found = await client.exists('/ready', { watch: true });
 * if (found.stat === null) await Promise.race([found.changed, timeout]);
 */
export interface Watched extends Disposable {
  /**
   * Resolves with the first change after the read. Survives reconnects and new sessions. Rejects with a ClosedError or
   * AuthFailedError when the client ends; the rejection may stay unhandled.
   */
  readonly changed: Promise<WatchEvent>;
  /** Removes the watch: `changed` is not settled any more. The server keeps its own, whose event is dropped. */
  [Symbol.dispose](): void;
}

/** Which watches `checkWatches` and `removeWatches` mean. 'persistent' and 'recursive' need a server of 3.9 or newer. */
export type WatchSelection = 'children' | 'data' | 'any' | 'persistent' | 'recursive';

export interface ReconfigOptions extends CallOptions {
  /** Servers to add or change, as `server.N=…` lines. */
  readonly joining?: readonly string[] | undefined;
  /** Ids of servers to remove. */
  readonly leaving?: readonly number[] | undefined;
  /** The whole new membership, instead of `joining` and `leaving`. */
  readonly members?: readonly string[] | undefined;
  /** Only if this is the version of the configuration in force. */
  readonly fromVersion?: bigint | undefined;
}
