/**
 * The pings to one learner of a leader that gives leases: the next one is sent only when the last one is answered, so that
 * a ping tells the learner that its last answer has come. NEWLEADER and its ACK count as the first pair.
 */
export class PingExchange {
  /** Milliseconds; what the learner has announced, when that is what the leader gives, otherwise 0. */
  leaseMs = 0;
  /** When the ping was sent that is not answered yet; null when there is none. */
  askedMs: number | null = null;
  /** The newest round of syncs when it was sent. */
  round = 0;
  /** The ping tells the learner that its answer before has come, and a lease with it. */
  confirms = true;
  /** Pings that were answered. */
  answered = 0;

  ask(nowMs: number, round: number, confirms: boolean): void {
    this.askedMs = nowMs;
    this.round = round;
    this.confirms = confirms;
  }

  /** @returns when that was asked; null when nothing was */
  onAnswered(): number | null {
    const { askedMs } = this;
    this.askedMs = null;
    if (askedMs !== null) this.answered++;
    return askedMs;
  }
}
