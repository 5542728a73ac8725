import type { DatabaseView, ZnodeView } from './base/server-view.ts';
import type { Database } from './tree/database.ts';
import { nextInSubtree } from './tree/subtree.ts';
import { NO_ZNODE, ROOT } from './tree/znode-rows.ts';

export function viewDatabase(database: Database): DatabaseView {
  const { tree, sessions } = database;
  tree.settle();
  return { lastZxid: tree.lastZxid, treeDigest: tree.treeDigest(), sessions, znodes: () => walk(database) };
}

function* walk({ tree }: Database): Iterable<ZnodeView> {
  for (let z = ROOT; z !== NO_ZNODE; z = nextInSubtree(tree.znodes, z, ROOT)) {
    yield {
      path: tree.znodes.pathOf(z),
      data: tree.dataOf(z),
      stat: tree.persistedStatOf(z),
      acl: tree.acls.get(tree.znodes.aclOf(z)),
    };
  }
}
