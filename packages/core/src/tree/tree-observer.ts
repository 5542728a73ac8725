import type { ZnodeNumber } from './znode-rows.ts';

/** Is told of changes before they are made; for reads that take several turns. */
export interface TreeObserver {
  /** The znode is about to leave the tree. It has no children any more, and is still linked to its parent. */
  onRemoving(z: ZnodeNumber): void;
  /** What stands at this path, or is about to, changes: data, ACL, stat or existence; its parent's stat may, too. */
  onChanging(path: string): void;
}
