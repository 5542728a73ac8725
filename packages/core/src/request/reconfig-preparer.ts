import { ErrorCode, OpCode, Perm, type ReconfigRequest, type Txn, type TxnHeader, type Zxid } from '@meerkat/protocol';
import type { Identity } from '../base/ports.ts';
import type { PendingTree } from './pending.ts';
import type { Permission } from './permission.ts';

/** Computes the membership that a reconfig results in. */
export interface Reconfigurer {
  /**
   * @param version zxid of the txn
   * @returns the text of the new membership, or the error of the first check that fails
   */
  plan(request: ReconfigRequest, version: Zxid): ReconfigPlan;
}

/** `errorIfAllowed`: we refuse, but Apache's server would not, so a client without permission must get NOAUTH instead. */
export type ReconfigPlan = string | ErrorCode | { readonly errorIfAllowed: ErrorCode };

/** For a standalone server, which has no members to change. */
export class NoReconfigurer implements Reconfigurer {
  readonly #error: ErrorCode;

  constructor(isReconfigEnabled: boolean) {
    this.#error = isReconfigEnabled ? ErrorCode.unimplemented : ErrorCode.reconfigDisabled;
  }

  plan(): ErrorCode {
    return this.#error;
  }
}

const CONFIG_PATH = '/zookeeper/config';
const ENCODER = new TextEncoder();

/** Turns a reconfig into a txn. The permission is checked last, as in Apache's server. */
export class ReconfigPreparer {
  readonly #pending: PendingTree;
  readonly #permission: Permission;
  readonly #reconfigurer: Reconfigurer;

  constructor(pending: PendingTree, permission: Permission, reconfigurer: Reconfigurer) {
    this.#pending = pending;
    this.#permission = permission;
    this.#reconfigurer = reconfigurer;
  }

  prepare(request: ReconfigRequest, { zxid }: TxnHeader, identities: readonly Identity[]): Txn {
    const plan = this.#reconfigurer.plan(request, zxid);
    if (typeof plan === 'number') return { type: OpCode.error, error: plan };
    const znode = this.#pending.find(CONFIG_PATH);
    if (znode === null) return { type: OpCode.error, error: ErrorCode.noNode };
    if (!this.#permission.isAllowed(znode.acl, Perm.write, identities)) {
      return { type: OpCode.error, error: ErrorCode.noAuth };
    }
    if (typeof plan === 'object') return { type: OpCode.error, error: plan.errorIfAllowed };
    const data = ENCODER.encode(plan);
    const edited = this.#pending.edit(znode, zxid);
    edited.version = VERSION;
    this.#pending.setData(edited, data);
    this.#pending.put(edited);
    return { type: OpCode.reconfig, path: CONFIG_PATH, data, version: VERSION };
  }
}

/** The version of the znode never changes. */
const VERSION = -1;
