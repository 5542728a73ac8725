import { ErrorCode, Perm, parentOf } from '@meerkat/protocol';
import { type Identity, isAllowed } from './access.ts';
import type { CommittedTree } from './committed-tree.ts';
import type { ZnodeState } from './znode-state.ts';

/** A write or a check, as far as the tree and its permissions decide about it. `version` −1 is any. */
export interface WriteAttempt {
  readonly op: 'create' | 'set' | 'delete' | 'setAcl' | 'check';
  readonly path: string;
  readonly version: number;
}

/** The error that a client's request must get in a state; `ok` when it succeeds. The first reason counts. */
export function expectedError(tree: CommittedTree, attempted: WriteAttempt, identity: Identity, zxid: number): number {
  const { op, path, version } = attempted;
  const may = ({ acl }: ZnodeState, perms: number): boolean => isAllowed(acl, perms, identity);
  const state = tree.stateAt(path, zxid);
  if (op === 'create' || op === 'delete') {
    const parent = tree.stateAt(parentOf(path), zxid);
    if (parent === null) return ErrorCode.noNode;
    if (!may(parent, op === 'create' ? Perm.create : Perm.delete)) return ErrorCode.noAuth;
    if (op === 'create') {
      if (state !== null) return ErrorCode.nodeExists;
      return parent.owner === 0n ? ErrorCode.ok : ErrorCode.noChildrenForEphemerals;
    }
  }
  if (state === null) return ErrorCode.noNode;
  const needed = PERM_OF[op];
  if (needed !== 0 && !may(state, needed)) return ErrorCode.noAuth;
  if (version !== -1 && version !== (op === 'setAcl' ? state.aversion : state.version)) return ErrorCode.badVersion;
  return op === 'delete' && state.numChildren > 0 ? ErrorCode.notEmpty : ErrorCode.ok;
}

/** Permission needed on the znode itself. */
const PERM_OF = { set: Perm.write, setAcl: Perm.admin, check: Perm.read, delete: 0, create: 0 } as const;
