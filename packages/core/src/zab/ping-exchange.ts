/**
 * The pings of a leader that grants leases to one learner: the next is sent only after the last one is answered, so
 * that a ping confirms the receipt of the learner's last answer. NEWLEADER and its ACK count as the first pair.
 */
export class PingExchange {
  /** Milliseconds; the lease announced by the learner if it equals the leader's, otherwise 0. */
  leaseMs = 0;
  /** When the outstanding ping was sent; null when none is outstanding. */
  askedMs: number | null = null;
  /** The newest round of syncs when the ping was sent. */
  round = 0;
  /** The ping confirms the previous answer, and so grants a lease. */
  confirms = true;
  /** Number of answered pings. */
  answered = 0;

  ask(nowMs: number, round: number, confirms: boolean): void {
    this.askedMs = nowMs;
    this.round = round;
    this.confirms = confirms;
  }

  /** @returns when the answered ping was sent; null when none was outstanding */
  onAnswered(): number | null {
    const { askedMs } = this;
    this.askedMs = null;
    if (askedMs !== null) this.answered++;
    return askedMs;
  }
}
