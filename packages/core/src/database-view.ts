import type { Acl, PersistedStat } from '@meerkat/protocol';
import type { Database } from './tree/database.ts';
import { NO_ZNODE, ROOT } from './tree/znode-table.ts';

/** One znode as it is kept. */
export interface ZnodeView {
  readonly path: string;
  /** A view of the tree's own bytes, valid until the next txn. */
  readonly data: Uint8Array | null;
  /** As a snapshot keeps it: `cversion` counts the children ever created, `ephemeralOwner` marks containers and TTLs too. */
  readonly stat: PersistedStat;
  readonly acl: readonly Acl[];
}

/** All that is replicated, as one server has it at this moment. */
export interface DatabaseView {
  readonly lastZxid: number;
  /** A signed long; 0n where digests are off. */
  readonly treeDigest: bigint;
  /** Negotiated timeout in milliseconds of each session that was created and not closed. */
  readonly sessions: ReadonlyMap<bigint, number>;
  /**
   * Every znode, a parent before its children, the root first. Whoever looks at a large tree stops between znodes, and
   * must not go on after a txn has been applied.
   */
  znodes(): Iterable<ZnodeView>;
}

export function viewDatabase(database: Database): DatabaseView {
  const { tree, sessions } = database;
  return { lastZxid: tree.lastZxid, treeDigest: tree.treeDigest(), sessions, znodes: () => walk(database) };
}

function* walk({ tree }: Database): Iterable<ZnodeView> {
  for (let z = ROOT; z !== NO_ZNODE; z = tree.nextInSubtree(z, ROOT)) {
    yield {
      path: tree.pathOf(z),
      data: tree.dataOf(z),
      stat: tree.persistedStatOf(z),
      acl: tree.acls.get(tree.aclOf(z)),
    };
  }
}
