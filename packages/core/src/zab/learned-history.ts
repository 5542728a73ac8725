/**
 * The history of a learner: what its leader has sent (`ReceivedProposals`), and how far that is durable and committed
 * here.
 *
 *     received.base ──── committed ──── durable ──── received.last
 */
import type { TxnEntry, Zxid } from '@meerkat/protocol';
import { assert } from '../base/assert.ts';
import { type Durable, withoutLog } from '../base/durable.ts';
import { ackTxn } from './acknowledgement.ts';
import { type Committed, commitHere } from './committed.ts';
import type { LearnerEffects } from './learner-host.ts';
import { ReceivedProposals } from './received-proposals.ts';

export class LearnedHistory {
  readonly #effects: Pick<LearnerEffects, 'append' | 'send'>;
  readonly #logs: boolean;
  /** Until `begin` it only records where the history ends. */
  #received: ReceivedProposals;
  /** The last sync that the log has reported since `begin`; null before the first. */
  #logged: Durable<Zxid> | null = null;
  #committed: Zxid;
  /** Apache's leader counts ACKs by zxid; ours takes an ACK as acknowledging everything before it. */
  acknowledgesEach = true;

  /** @param logs false for an observer that keeps no log */
  constructor(lastZxid: Durable<Zxid>, logs: boolean, effects: Pick<LearnerEffects, 'append' | 'send'>) {
    this.#effects = effects;
    this.#logs = logs;
    this.#received = new ReceivedProposals(lastZxid);
    this.#committed = lastZxid;
  }

  /** The history continues from where the database and the disk end now. */
  begin(lastZxid: Durable<Zxid>): void {
    this.#received = new ReceivedProposals(lastZxid);
    this.#committed = lastZxid;
  }

  get received(): ReceivedProposals {
    return this.#received;
  }

  /** What has been reported as committed; before that, where the history began. */
  get committed(): Zxid {
    return this.#committed;
  }

  /** What the log holds; if nothing is logged, everything received, which is what this server can apply. */
  get durable(): Durable<Zxid> {
    if (!this.#logs) return withoutLog(this.#received.last);
    return this.#logged ?? this.#received.base;
  }

  append({ header }: TxnEntry, payload: Uint8Array): void {
    if (this.#logs) this.#effects.append(header.zxid, payload);
  }

  /** Everything appended up to `durable` is on the disk. */
  onLogSynced(durable: Durable<Zxid>): void {
    assert(durable <= this.#received.last, 'the log holds nothing that was not received');
    assert(this.#logged === null || durable >= this.#logged, 'the log does not forget');
    this.#logged = durable;
  }

  /** From here on proposals are acknowledged, see `ReceivedProposals`. */
  beginAcknowledging(): void {
    this.#received.beginAcknowledging();
    if (this.#logged !== null) this.acknowledge(this.#logged);
  }

  acknowledge(durable: Durable<Zxid>): void {
    let last: Durable<Zxid> | null = null;
    let zxid = this.#received.takeUnacknowledged(durable);
    for (; zxid !== null; zxid = this.#received.takeUnacknowledged(durable)) {
      if (this.acknowledgesEach) this.#effects.send(ackTxn(zxid));
      else last = zxid;
    }
    if (last !== null) this.#effects.send(ackTxn(last));
  }

  /**
   * Applying a txn that is not durable would let memory run ahead of a log that may fail (ZOOKEEPER-4882).
   *
   * @returns the new commit watermark; null when it has not advanced
   */
  takeCommitted(): Committed<Zxid> | null {
    const { agreed } = this.#received;
    if (agreed === null) return null;
    const watermark = commitHere(agreed, this.durable);
    if (watermark <= this.#committed) return null;
    this.#committed = watermark;
    return watermark;
  }
}
