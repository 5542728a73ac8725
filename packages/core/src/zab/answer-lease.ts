/**
 * How long a server may answer its clients. Guarantees: docs/leases.md. D is the lease, S a session's timeout.
 *
 *     who        may                                       until
 *     leader     answer its clients                        D after it sent pings that a quorum answered
 *     learner    answer its clients                        D after its answer to a ping that a later ping has confirmed
 *     learner    take a session's request                  S × 31/32 after the session's last one; then it closes
 *     leader     end a session of a talking learner        not before the learner answered a ping, sent after the session
 *                                                          was due, without naming it
 *     leader     end a session of a mute or lost learner   not before S + D × 33/32 after the learner's last answer
 *     leader, new  end any session                         not before S + 2 D × 33/32 after its epoch began, unless its
 *                                                          client came back
 *
 * A ping confirms the answer to the previous ping, except a ping with zxid 0 (the leader's lease is over), and except
 * an answer whose active sessions did not fit into one packet.
 *
 * Why it holds. Server F last answers a client at t; leader L ends the session.
 *
 * - F is L's learner and talks: at t the session had sent nothing for S × 31/32, so F would have refused.
 * - F is L's learner and mute: t is at most D after the last answer that L has; L waits D and S from there.
 * - F is of an earlier epoch, whose last ping answered by a quorum was sent at q: the quorums share a voter, so L's epoch
 *   began after q. The old leader answers until q + D, its learners until q + 2 D.
 * - The session moved: the client closes its connection first; L counts S from receiving REVALIDATE, the new server
 *   from sending it.
 * - A process that was paused reads the clock before its answers leave.
 */
import type { Electorate } from '../election/electorate.ts';
import { QuorumWatermark } from './quorum-watermark.ts';

export interface AnswerLease {
  /** Milliseconds of the monotonic clock; Infinity when nothing limits it. */
  readonly untilMs: number;
}

/** Of a standalone server, or of an ensemble without leases. */
export const UNLIMITED: AnswerLease = { untilMs: Number.POSITIVE_INFINITY };

/**
 * The lease of a leader: a quorum still followed it when it sent the ping, so no other leader began before that.
 *
 *     ping ──► voter follows this leader ──► answer            the lease is counted from the ping
 */
export class LeaderLease implements AnswerLease {
  readonly #serverId: number;
  readonly #leaseMs: number;
  readonly #asked: QuorumWatermark<number>;
  #untilMs = Number.NEGATIVE_INFINITY;

  /** @param leaseMs 0: no limit */
  constructor(serverId: number, electorate: Electorate, leaseMs: number) {
    this.#serverId = serverId;
    this.#leaseMs = leaseMs;
    this.#asked = new QuorumWatermark(electorate);
    this.#asked.raise(serverId, Number.POSITIVE_INFINITY);
    this.#renew();
  }

  get untilMs(): number {
    return this.#untilMs;
  }

  /** A voter has answered a ping that was sent at `askedMs`. */
  onAnswered(serverId: number, askedMs: number): void {
    this.#asked.raise(serverId, askedMs);
    this.#renew();
  }

  /**
   * The quorum changes, perhaps to this server alone or back to several. A lease granted under the old quorum is cut to
   * one lease from now, as if all of its voters had just been pinged.
   */
  onElectorateChanged(nowMs: number): void {
    this.#asked.raise(this.#serverId, Number.POSITIVE_INFINITY);
    this.#untilMs = Math.min(this.#untilMs, nowMs + this.#leaseMs);
    this.#renew();
  }

  /** A voter has disconnected. A lease that its answers have granted stays valid. */
  forget(serverId: number): void {
    this.#asked.forget(serverId);
  }

  #renew(): void {
    if (this.#leaseMs === 0) this.#untilMs = Number.POSITIVE_INFINITY;
    else if (this.#asked.reached >= 0) this.#untilMs = Math.max(this.#untilMs, this.#asked.reached + this.#leaseMs);
  }
}

/**
 * The lease of a learner. It is counted from the sending of an answer to a ping, once a later ping shows that the leader
 * has received that answer: from then on the leader ends no session that may have been active at this learner since.
 *
 *     ping 1 ─► answer 1 ─► … ─► ping 2           the lease is counted from answer 1
 */
export class LearnerLease implements AnswerLease {
  /** 0 until the leader is known to grant leases, and if it grants none. */
  #leaseMs = 0;
  /** When the last answer was sent; null if it did not list all active sessions. */
  #answeredMs: number | null = null;
  #untilMs = Number.POSITIVE_INFINITY;

  get untilMs(): number {
    return this.#untilMs;
  }

  /** True when the leader waits for this learner before it ends a session. */
  get isHeld(): boolean {
    return this.#leaseMs > 0;
  }

  /** The leader grants leases of this length. */
  begin(leaseMs: number): void {
    this.#leaseMs = leaseMs;
    this.#untilMs = leaseMs === 0 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  }

  /** A ping has come, or will have, that the leader sends after it has received the last answer. */
  onConfirmed(): void {
    if (this.#leaseMs > 0 && this.#answeredMs !== null) {
      this.#untilMs = Math.max(this.#untilMs, this.#answeredMs + this.#leaseMs);
    }
  }

  /** @param isComplete false: more sessions were active than the answer has room for */
  onAnswering(nowMs: number, isComplete: boolean): void {
    this.#answeredMs = isComplete ? nowMs : null;
  }
}
