/**
 * Confirms that a leader still leads: a sync is answered when a quorum has answered a ping that was sent after it.
 *
 * A voter answers the pings of a leader only while it follows it. So when a quorum has answered a ping sent after the
 * sync arrived, no other leader can have committed anything before it arrived (otherwise: ZOOKEEPER-1675).
 *
 *     sync  sync │ round 7: ping to all voters ──► answers of a quorum ──► both are answered
 *     sync       │ round 8 …
 *
 * One round serves all syncs of a turn. Rounds overlap: a connection answers its pings in order, so the number of its
 * answers tells which round it has reached, and a sync never waits for an earlier round to finish.
 */
import { Fifo, type Zxid } from '@meerkat/protocol';
import type { Electorate } from '../election/electorate.ts';
import { QuorumWatermark } from './quorum-watermark.ts';

interface WaitingSyncs {
  /** All tickets up to this one. */
  ticket: number;
  /** Last zxid proposed before the sync. */
  readonly zxid: Zxid;
  readonly round: number;
}

export class SyncRounds {
  readonly #serverId: number;
  readonly #answers: QuorumWatermark<number>;
  readonly #electorate: Electorate;
  readonly #waiting = new Fifo<WaitingSyncs>();
  #newest: WaitingSyncs | null = null;
  #round = 0;
  #lastTicket = 0;
  #lastAnswered = 0;

  constructor(serverId: number, electorate: Electorate) {
    this.#serverId = serverId;
    this.#answers = new QuorumWatermark(electorate);
    this.#electorate = electorate;
  }

  /** No ping is needed if this server is a quorum by itself. */
  get #isAlone(): boolean {
    return this.#electorate.isQuorum([this.#serverId]);
  }

  /** The last round begun; 0 before the first. */
  get round(): number {
    return this.#round;
  }

  /** Every ticket up to this one is answered. */
  get lastAnswered(): number {
    return this.#lastAnswered;
  }

  /** True when a sync waits for a round that has not begun. */
  get isRoundDue(): boolean {
    return this.#newest !== null && this.#newest.round > this.#round;
  }

  /**
   * Adds a sync.
   *
   * @param lastProposed the txn that must be applied before the sync is answered
   * @param applied the last applied txn
   * @returns its ticket; with a quorum of one and nothing to wait for, the last ticket answered
   */
  add(lastProposed: Zxid, applied: Zxid): number {
    const newest = this.#newest;
    // Returns a ticket that is answered already, so that the caller need not wait for an event.
    if (this.#isAlone && newest === null && lastProposed <= applied) return this.#lastAnswered;
    const ticket = ++this.#lastTicket;
    const round = this.#isAlone ? 0 : this.#round + 1;
    if (newest !== null && newest.zxid === lastProposed && newest.round === round) {
      newest.ticket = ticket;
    } else {
      this.#newest = { ticket, zxid: lastProposed, round };
      this.#waiting.push(this.#newest);
    }
    return ticket;
  }

  /** The caller now pings every voter; this server counts as having answered. */
  beginRound(): void {
    this.#round++;
    this.#answers.raise(this.#serverId, this.#round);
  }

  onAnswer(serverId: number, round: number): void {
    this.#answers.raise(serverId, round);
  }

  forget(serverId: number): void {
    this.#answers.forget(serverId);
  }

  /** @returns the newest ticket that became answered, or null when none did */
  takeAnswered(applied: Zxid): number | null {
    if (this.#waiting.length === 0) return null;
    const before = this.#lastAnswered;
    const confirmed = this.#answers.reached;
    for (let oldest = this.#waiting.peek(); oldest !== undefined; oldest = this.#waiting.peek()) {
      if (oldest.zxid > applied || oldest.round > Math.max(0, confirmed)) break;
      this.#waiting.shift();
      this.#lastAnswered = oldest.ticket;
    }
    if (this.#waiting.length === 0) this.#newest = null;
    return this.#lastAnswered > before ? this.#lastAnswered : null;
  }
}
