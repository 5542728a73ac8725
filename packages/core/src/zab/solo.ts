import {
  counterOf,
  epochOf,
  MAX_COUNTER,
  makeZxid,
  nextZxid,
  type Txn,
  type TxnHeader,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { Durable } from '../base/durable.ts';
import type { Broadcast } from './broadcast.ts';
import { type Committed, commitAlone } from './committed.ts';

/** Appends proposals to the log; `onLogSynced` reports when they are durable. */
export interface TxnAppender {
  /** @returns bytes of the txn's entry */
  append(header: TxnHeader, txn: Txn, treeDigest: bigint | null): number;
}

/**
 * The broadcast of a standalone server, which is a quorum by itself. A proposal is committed once its own log has it.
 *
 *     propose ──► log ──► onLogSynced(Durable) ──► Committed
 */
export class SoloBroadcast implements Broadcast {
  readonly #log: TxnAppender;
  #lastProposed: Zxid;
  #lastCommitted: Zxid;

  constructor(log: TxnAppender, lastZxid: Zxid) {
    this.#log = log;
    this.#lastProposed = lastZxid;
    this.#lastCommitted = lastZxid;
  }

  get lastProposed(): Zxid {
    return this.#lastProposed;
  }

  /** A ticket is the zxid that it waits for. */
  get lastSynced(): number {
    return this.#lastCommitted;
  }

  /** The zxid that the next proposal must have. A counter of 0 belongs to no txn. */
  nextZxid(): Zxid {
    const last = this.#lastProposed;
    if (counterOf(last) === MAX_COUNTER) return makeZxid(epochOf(last) + 1, 1);
    return nextZxid(last);
  }

  propose(header: TxnHeader, txn: Txn, treeDigest: bigint | null): number {
    assert(header.zxid === this.nextZxid(), 'a proposal takes the next zxid');
    this.#lastProposed = header.zxid;
    return this.#log.append(header, txn, treeDigest);
  }

  /** No other server can propose, so waiting for all own proposals is enough. */
  sync(): number {
    return this.#lastProposed;
  }

  /** @returns the new watermark: every proposal up to it may be applied and answered */
  onLogSynced(durable: Durable<Zxid>): Committed<Zxid> {
    assert(durable >= this.#lastCommitted, 'the log does not forget');
    assert(durable <= this.#lastProposed, 'the log holds nothing that was not proposed');
    this.#lastCommitted = durable;
    return commitAlone(durable);
  }
}
