/**
 * The proposals of a leader, which voters hold them durably, and which are therefore committed.
 *
 *     ──── applied ──────── committed ──────── lastProposed
 *      told to the host │ a quorum has it │ outstanding
 *
 * 1. applied ≤ committed ≤ lastProposed, and none of them decreases.
 * 2. committed is what a quorum of every configuration holds durably. A voter that acknowledges a txn holds all before
 *    it, so txns are committed in order.
 * 3. applied is committed and durable at the leader itself: memory is never ahead of the disk (ZOOKEEPER-4882).
 * 4. Only acknowledgements by voters count, and only of txns proposed in this epoch.
 */
import {
  counterOf,
  DIGEST_VERSION,
  epochOf,
  makeZxid,
  type Txn,
  type TxnHeader,
  writeTxn,
  writeTxnDigest,
  type Zxid,
} from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import type { Durable } from '../base/durable.ts';
import type { Electorate, QuorumProof } from '../election/electorate.ts';
import { type Agreed, agreedBy, type Committed, commitHere, commitHistory } from './committed.ts';
import type { History } from './history.ts';
import { PayloadMemory } from './payload-memory.ts';
import { QuorumWatermark } from './quorum-watermark.ts';
import { RecentLog } from './recent-log.ts';
import type { SyncSource } from './sync-source.ts';

export class Proposals implements SyncSource {
  /** Committed txns followed by the outstanding ones. */
  readonly log: RecentLog;
  readonly #serverId: number;
  readonly #acks: QuorumWatermark<Durable<Zxid>>;
  readonly #history: Durable<Zxid>;
  #epoch = -1;
  #lastProposed: Zxid;
  /** Among the proposals of this leader; null before the first commit. */
  #agreed: Agreed<Zxid> | null = null;
  #durable: Durable<Zxid>;
  #applied: Zxid;
  /** True once a quorum has the initial history. */
  isEstablished = false;
  readonly #memory = new PayloadMemory();

  /** @param history the leader's own, all of which is committed once the epoch is established */
  constructor(serverId: number, electorate: Electorate, history: History, commitLogCount: number) {
    this.#serverId = serverId;
    this.log = new RecentLog(history, commitLogCount);
    this.#acks = new QuorumWatermark(electorate);
    this.#lastProposed = history.lastZxid;
    this.#history = history.lastZxid;
    this.#durable = history.lastZxid;
    this.#applied = history.lastZxid;
  }

  /** −1 before `beginEpoch`. */
  get epoch(): number {
    return this.#epoch;
  }

  /** (epoch, 0) when nothing has been proposed in this epoch. */
  get lastProposed(): Zxid {
    return this.#lastProposed;
  }

  /** The last txn, of this epoch or of the initial history. */
  get lastTxn(): Zxid {
    return this.log.last;
  }

  /** Before the epoch is established, the end of the initial history. */
  get committed(): Zxid {
    return this.#agreed ?? this.#history;
  }

  get applied(): Zxid {
    return this.#applied;
  }

  /**
   * Zxid for a snapshot of the applied state: the last txn's or, before the first txn of the epoch, (epoch, 0). The
   * latter denotes the initial history of the epoch, so it is used only once a quorum has that.
   */
  get snapshotZxid(): Zxid {
    return this.isEstablished && epochOf(this.#applied) < this.#epoch ? makeZxid(this.#epoch, 0) : this.#applied;
  }

  /** From here on zxids are of this epoch. */
  beginEpoch(epoch: number): void {
    assert(epoch > epochOf(this.#lastProposed), 'a new epoch is later than the whole history');
    this.#epoch = epoch;
    this.#lastProposed = makeZxid(epoch, 0);
  }

  /** The initial history, which is committed when a quorum has acknowledged NEWLEADER. */
  commitHistory(adopters: QuorumProof): Committed<Zxid> {
    this.isEstablished = true;
    return commitHistory(this.#history, adopters);
  }

  /** @returns the txn as PROPOSAL carries it: header, record and digest */
  propose(header: TxnHeader, txn: Txn, treeDigest: bigint | null): Uint8Array {
    const { zxid } = header;
    assert(zxid === this.#lastProposed + 1, 'a proposal takes the next zxid');
    const writer = this.#memory.begin();
    writeTxn(writer, header, txn);
    if (treeDigest !== null) writeTxnDigest(writer, DIGEST_VERSION, treeDigest);
    const payload = this.#memory.end(zxid);
    this.log.push({ zxid, payload });
    this.#lastProposed = zxid;
    return payload;
  }

  /** A server holds everything up to `zxid` durably. Ignored if the txn is of another epoch or was not proposed. */
  acknowledge(serverId: number, zxid: Durable<Zxid>): void {
    if (!this.isOutstandingOrCommitted(zxid)) return;
    this.#acks.raise(serverId, zxid);
  }

  /** True of a txn that this leader has proposed. */
  isOutstandingOrCommitted(zxid: Zxid): boolean {
    return epochOf(zxid) === this.#epoch && counterOf(zxid) > 0 && zxid <= this.#lastProposed;
  }

  /** The connection of a server is gone: its acknowledgements no longer count; committed txns stay committed. */
  forget(serverId: number): void {
    this.#acks.forget(serverId);
  }

  onLogSynced(durable: Durable<Zxid>): void {
    assert(durable >= this.#durable, 'the log does not forget');
    assert(durable <= this.#lastProposed, 'the log holds nothing that was not proposed');
    this.#durable = durable;
    this.acknowledge(this.#serverId, durable);
  }

  /** Advances the commit watermark. @returns true when it has moved */
  commit(): boolean {
    const reached = agreedBy(this.#acks);
    if (reached === null || reached <= this.committed) return false;
    this.#agreed = reached;
    return true;
  }

  /** @returns the new watermark when more may be applied, otherwise null */
  apply(): Committed<Zxid> | null {
    if (this.#agreed === null) return null;
    const applied = commitHere(this.#agreed, this.#durable);
    if (applied <= this.#applied) return null;
    this.#applied = applied;
    this.log.trim(applied);
    this.#memory.drop(this.log.floor);
    return applied;
  }
}
