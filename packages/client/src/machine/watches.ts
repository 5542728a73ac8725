/** The vocabulary of watches inside this package. */

/** What happened to a watched znode. */
export type WatchEventType = 'created' | 'deleted' | 'changed' | 'children';

export interface WatchEvent {
  readonly type: WatchEventType;
  readonly path: string;
  /** zxid of the txn that made the change; null when the server does not tell (before 3.9, and replayed events). */
  readonly zxid: bigint | null;
}

/** Whoever waits for a watch. Called synchronously while bytes are taken apart: it only notes what it is told. */
export interface WatchListener {
  onWatchEvent(event: WatchEvent): void;
  /** The connection is gone; the watch is armed again on the next one. Persistent watches miss what happens meanwhile. */
  onWatchSuspended(): void;
  /** The watch is armed again, after `onWatchSuspended`; a persistent one may have missed events before this. */
  onWatchRearmed(): void;
  /** The watch is gone for good: the client was closed, or the server refused to arm it again. Nothing follows. */
  onWatchEnded(reason: 'closed' | 'auth-failed' | 'refused'): void;
}
