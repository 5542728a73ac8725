import type { Zxid } from '@meerkat/protocol';

/**
 * What applying a txn did to the tree, told when it is done and before the next part of the same txn.
 *
 * The ids of the ACLs decide who may hear of it: of the znode itself (a deleted one: as it was) and of its parent.
 * `parentPath` of a child of the root is '/'. Each event stands for watch events (docs/protocol/client.md, "Watches"):
 * onCreated: NodeCreated, then NodeChildrenChanged of the parent; onDeleted: NodeDeleted, then NodeChildrenChanged of
 * the parent; onDataChanged: NodeDataChanged.
 */
export interface TreeEvents {
  onCreated(path: string, aclId: number, parentPath: string, parentAclId: number, zxid: Zxid): void;
  onDeleted(path: string, aclId: number, parentPath: string, parentAclId: number, zxid: Zxid): void;
  onDataChanged(path: string, aclId: number, zxid: Zxid): void;
}

/** Nobody listens: the replay of a log. */
export const SILENT_EVENTS: TreeEvents = { onCreated() {}, onDeleted() {}, onDataChanged() {} };
