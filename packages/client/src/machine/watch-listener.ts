/** The type of a change. */
export type WatchEventType = 'created' | 'deleted' | 'changed' | 'children';

export interface WatchEvent {
  readonly type: WatchEventType;
  readonly path: string;
  /** zxid of the txn that made the change; null when the server does not send it (before 3.9, and replayed events). */
  readonly zxid: bigint | null;
}

/** A listener of a watch. Called synchronously while bytes are decoded: it must not call back into the session. */
export interface WatchListener {
  onWatchEvent(event: WatchEvent): void;
  /** The connection is gone; the watch is rearmed on the next one. Persistent watches miss events meanwhile. */
  onWatchSuspended(): void;
  /** The watch is rearmed, after `onWatchSuspended`; a persistent one may have missed events before this. */
  onWatchRearmed(sameSession: boolean): void;
  /** The watch has ended. Nothing follows. */
  onWatchEnded(reason: WatchEnd): void;
}

export type WatchEnd = 'closed' | 'auth-failed' | 'removed';

/** The lists of watches that a path can be in. The first three are one-shot. */
export type WatchKind = 'data' | 'exist' | 'child' | 'persistent' | 'recursive';
