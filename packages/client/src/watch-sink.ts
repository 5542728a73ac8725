import type { WatchEvent } from './machine/watch-listener.ts';

/** Why changes may have been missed: there was no connection, or there is also a new session. */
export type GapReason = 'reconnected' | 'new-session';

/** Receives the changes of a znode or a subtree. Must not throw. */
export interface WatchSink {
  onEvent(event: WatchEvent): void;
  /** The watch is rearmed; changes since the connection was lost may not have been reported. */
  onGap(reason: GapReason): void;
  /** Nothing follows. */
  onEnd(error: Error): void;
}
