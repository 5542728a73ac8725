import { NO_ZNODE, type ZnodeNumber } from './znode-rows.ts';
import type { ZnodeTable } from './znode-table.ts';

type Kinship = Pick<ZnodeTable, 'firstChildOf' | 'nextSiblingOf' | 'parentOf'>;

/**
 * Walks a subtree, every znode before its children: `top` first, then each returned znode, until NO_ZNODE. The tree
 * must not change meanwhile.
 */
export function nextInSubtree(table: Kinship, z: ZnodeNumber, top: ZnodeNumber): ZnodeNumber {
  const child = table.firstChildOf(z);
  return child === NO_ZNODE ? nextBehindSubtree(table, z, top) : child;
}

/** The same, skipping the descendants of `z`. */
export function nextBehindSubtree(table: Kinship, z: ZnodeNumber, top: ZnodeNumber): ZnodeNumber {
  for (let at = z; at !== top; at = table.parentOf(at)) {
    const next = table.nextSiblingOf(at);
    if (next !== NO_ZNODE) return next;
  }
  return NO_ZNODE;
}
