import { ErrorCode } from '@meerkat/protocol';
import type { Identity } from '../base/ports.ts';
import { OPEN_ACL_ID } from '../tree/acl-table.ts';
import type { DataTree } from '../tree/data-tree.ts';
import type { Permission } from './permission.ts';

/** Checks that a znode exists and may be read. */
export class ReadAccess {
  readonly #tree: DataTree;
  readonly #permission: Permission;

  constructor(tree: DataTree, permission: Permission) {
    this.#tree = tree;
    this.#permission = permission;
  }

  /** @param perms bits of `Perm`; any of them is enough */
  check(znode: number, perms: number, identities: readonly Identity[]): ErrorCode {
    if (znode === 0) return ErrorCode.noNode;
    const aclId = this.#tree.znodes.aclOf(znode);
    if (aclId === OPEN_ACL_ID || this.#permission.isAllowed(this.#tree.acls.get(aclId), perms, identities)) {
      return ErrorCode.ok;
    }
    return ErrorCode.noAuth;
  }
}
