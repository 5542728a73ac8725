import type { TraceEvent } from '@meerkat/core';
import type { VirtualServer } from './virtual-server.ts';

/** Observes servers while they work, and changes nothing. */
export interface WorldWatcher {
  /** In the middle of a turn: a trace event of the server. */
  onTrace?(server: VirtualServer, event: TraceEvent): void;
  /** In the middle of a turn: a txn was applied because it is committed, after which the tree has this digest. */
  onApplied?(server: VirtualServer, zxid: number, treeDigest: bigint): void;
  /** A turn has ended: everything that follows from an event has happened. */
  onTurn?(server: VirtualServer): void;
  /** Something was done to a server, or its process has exited by itself; in words. */
  onChange?(server: VirtualServer, what: string): void;
}
