import type { Zxid } from '@meerkat/protocol';

/**
 * The changes that a txn made to the tree, reported after each part of a txn and before the next part.
 *
 * The ACL ids decide who may be notified: that of the znode itself (before the change for a deleted one) and of its
 * parent.
 * `parentPath` of a child of the root is '/'. Each event stands for watch events (docs/protocol/client.md, "Watches"):
 * onCreated: NodeCreated, then NodeChildrenChanged of the parent; onDeleted: NodeDeleted, then NodeChildrenChanged of
 * the parent; onDataChanged: NodeDataChanged.
 */
export interface TreeEvents {
  onCreated(path: string, aclId: number, parentPath: string, parentAclId: number, zxid: Zxid): void;
  onDeleted(path: string, aclId: number, parentPath: string, parentAclId: number, zxid: Zxid): void;
  onDataChanged(path: string, aclId: number, zxid: Zxid): void;
}

/** No listeners: the replay of a log. */
export const SILENT_EVENTS: TreeEvents = { onCreated() {}, onDeleted() {}, onDataChanged() {} };
