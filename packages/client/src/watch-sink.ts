import type { WatchEvent } from './machine/watch-listener.ts';

/** Why changes may have gone unheard: there was no connection, or the session is another one besides. */
export type GapReason = 'reconnected' | 'new-session';

/** Learns of the changes of a znode or a subtree. Must not throw. */
export interface WatchSink {
  onEvent(event: WatchEvent): void;
  /** The watch is armed again; what happened since the connection was lost may not have been told. */
  onGap(reason: GapReason): void;
  /** Nothing follows. */
  onEnd(error: Error): void;
}
