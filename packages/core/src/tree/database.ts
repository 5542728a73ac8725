import { OpCode, type Txn, type TxnHeader, type Zxid } from '@meerkat/protocol';
import type { Trace } from '../base/ports.ts';
import type { ApplyResult } from './apply-result.ts';
import { DataTree, type DataTreeOptions } from './data-tree.ts';
import { type Prepared, UNPREPARED } from './prepared.ts';
import type { TreeEvents } from './tree-events.ts';
import type { TxnSteps } from './txn-steps.ts';

/** All that is replicated and persisted: the tree, and the sessions with their timeouts (ZKDatabase). */
export class Database {
  readonly tree: DataTree;
  /** Negotiated timeout in milliseconds of each session that was created and not closed. */
  readonly sessions: Map<bigint, number> = new Map();

  constructor(options: DataTreeOptions, trace: Trace) {
    this.tree = new DataTree(options, trace);
  }

  /** Zxid of the last txn applied. */
  get lastZxid(): Zxid {
    return this.tree.lastZxid;
  }

  /** Applies a committed txn. Closing a session also deletes its ephemerals. `prepared` as in `DataTree.apply`. */
  apply(header: TxnHeader, txn: Txn, events: TreeEvents, prepared: Prepared = UNPREPARED): ApplyResult {
    this.#applyToSessions(header, txn);
    return this.tree.apply(header, txn, events, prepared);
  }

  /** As `DataTree.applyInSteps`. */
  applyInSteps(header: TxnHeader, txn: Txn, events: TreeEvents, prepared: Prepared): TxnSteps | null {
    const steps = this.tree.applyInSteps(header, txn, events, prepared);
    if (steps !== null) this.#applyToSessions(header, txn);
    return steps;
  }

  #applyToSessions(header: TxnHeader, txn: Txn): void {
    if (txn.type === OpCode.createSession) this.sessions.set(header.sessionId, txn.timeoutMs);
    else if (txn.type === OpCode.closeSession) this.sessions.delete(header.sessionId);
  }
}
