import type { ZnodeNumber } from './znode-rows.ts';

/** Notified of changes before they are made; for reads that span several turns. */
export interface TreeObserver {
  /** The znode is about to be removed. It has no children left, and is still linked to its parent. */
  onRemoving(z: ZnodeNumber): void;
  /** The znode at this path is about to change: data, ACL, stat or existence; its parent's stat may change too. */
  onChanging(path: string): void;
}
