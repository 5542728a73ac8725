import {
  ErrorCode,
  type MultiOp,
  OPEN_ACL,
  OpCode,
  type Txn,
  txnBytesMaxOf,
  type WriteRequest,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { Identity } from '../base/ports.ts';
import { PendingTree } from '../request/pending.ts';
import { Permission } from '../request/permission.ts';
import { Preparer } from '../request/prepare.ts';
import type { PrepareSteps } from '../request/prepare-steps.ts';
import { SILENT_EVENTS } from '../tree/data-tree.ts';
import { Database } from '../tree/database.ts';
import { type Prepared, UNPREPARED } from '../tree/prepared.ts';
import { PLAIN_AUTHENTICATOR } from './plain-authenticator.ts';

const NO_TRACE = { emit() {} };
export const ANN: Identity = { scheme: 'digest', id: 'ann:secret' };

export interface BenchOptions {
  readonly database?: Database;
  readonly txnBytesMax?: number;
}

/** A preparer with its own database; `lag` is the number of txns that stay in flight before they are applied. */
export class PreparerBench {
  readonly database: Database;
  readonly pending: PendingTree;
  readonly preparer: Preparer;
  readonly #lag: number;
  #zxid: number;
  readonly #inFlight: { zxid: Zxid; sessionId: bigint; txn: Txn; digest: bigint | null; prepared: Prepared }[] = [];

  constructor(lag = 0, { database = makeDatabase(), txnBytesMax = txnBytesMaxOf(0xfffff, null) }: BenchOptions = {}) {
    this.#lag = lag;
    this.database = database;
    this.#zxid = database.lastZxid;
    this.pending = new PendingTree(database.tree, true);
    this.preparer = new Preparer(this.pending, new Permission(PLAIN_AUTHENTICATOR, false), database.tree.quotas, {
      extendedTypesEnabled: true,
      enforceQuota: false,
      containerNeverUsedMs: 0,
      txnBytesMax,
    });
  }

  /** With a znode /q that has had `count` children. */
  static afterChildren(count: number): PreparerBench {
    const { database } = new PreparerBench();
    const q = { type: OpCode.create, path: '/q', data: null, acl: OPEN_ACL, isEphemeral: false, parentCversion: 1 };
    database.apply({ sessionId: 7n, cxid: 0, zxid: 1 as Zxid, time: 1 }, q as Txn, SILENT_EVENTS);
    database.tree.state.countCreated(database.tree.znodes.find('/q'), count, 0);
    return new PreparerBench(0, { database });
  }

  write(request: WriteRequest, identities: readonly Identity[] = [], sessionId = 7n): Txn {
    return this.#send(sessionId, (zxid) =>
      this.preparer.prepareWrite(request, { sessionId, cxid: 0, zxid, time: 1000 + zxid }, identities),
    );
  }

  /** @param count as in `PrepareSteps.advance`; in between the oldest txn in flight is applied */
  multi(
    ops: readonly MultiOp[],
    sessionId = 7n,
    identities: readonly Identity[] = [],
    count: number = Number.POSITIVE_INFINITY,
  ): Txn {
    return this.#send(sessionId, (zxid) => {
      const header = { sessionId, cxid: 0, zxid, time: 1000 + zxid };
      return this.#finish(this.preparer.multiSteps({ op: OpCode.multi, ops }, header, identities), count);
    });
  }

  /** @param count as above */
  closeSession(sessionId: bigint, count: number = Number.POSITIVE_INFINITY): Txn {
    return this.#send(sessionId, (zxid) => this.#finish(this.preparer.closeSessionSteps(sessionId, zxid), count));
  }

  #finish(steps: PrepareSteps, count: number): Txn {
    for (;;) {
      const txn = steps.advance(count);
      if (txn !== null) return txn;
      if (this.#inFlight.length > 0) this.#applyOldest();
    }
  }

  error(request: WriteRequest, identities: readonly Identity[] = []): number {
    const txn = this.write(request, identities);
    return txn.type === OpCode.error ? txn.error : ErrorCode.ok;
  }

  applyAll(): void {
    while (this.#inFlight.length > 0) this.#applyOldest();
  }

  #send(sessionId: bigint, prepare: (zxid: Zxid) => Txn): Txn {
    const zxid = ++this.#zxid as Zxid;
    const txn = prepare(zxid);
    // With a lag, like the pipeline: what prepare has computed is passed on; without, the tree computes it.
    const prepared = this.#lag > 0 ? this.preparer.preparedOf(txn) : UNPREPARED;
    this.#inFlight.push({ zxid, sessionId, txn, digest: this.pending.treeDigest(), prepared });
    while (this.#inFlight.length > this.#lag) this.#applyOldest();
    return txn;
  }

  #applyOldest(): void {
    const { zxid, sessionId, txn, digest, prepared } = this.#inFlight.shift()!;
    this.database.apply({ sessionId, cxid: 0, zxid, time: 1000 + zxid }, txn, SILENT_EVENTS, prepared);
    this.pending.onApplied(zxid);
    assert(this.database.tree.treeDigest() === digest, 'the digest that was prepared is that of the tree');
  }
}

function makeDatabase(): Database {
  return new Database({ extendedTypesEnabled: true, digestEnabled: true }, NO_TRACE);
}
