/**
 * Until when a server may answer its clients. What is promised: docs/leases.md. D is the lease, S a session's timeout.
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
 * A ping confirms the answer to the one before; not with the zxid 0, when the leader's lease is over, nor when the sessions
 * heard from do not fit into one packet.
 *
 * Why it holds. Server F last answers a client at t; leader L ends the session.
 *
 * - F is L's learner and talks: at t it had heard nothing of the session for S × 31/32, and would have refused.
 * - F is L's learner and mute: t is at most D after the last answer that L has; L waits D and S from there.
 * - F is of an earlier epoch, whose last ping answered by a quorum was sent at q: the quorums share a voter, so L's epoch
 *   began after q. The old leader answers until q + D, its learners until q + 2 D.
 * - The session moved: the client closes its connection first; L counts S from REVALIDATE, the new server from its question.
 * - A process that stood still reads the clock before answers leave.
 */
import type { Electorate } from '../election/electorate.ts';
import { QuorumWatermark } from './quorum-watermark.ts';

export interface AnswerLease {
  /** Milliseconds of the monotonic clock; Infinity when nothing limits it. */
  readonly untilMs: number;
}

/** Of a server that asks nobody: one of its own, or one beside servers that hold no leases. */
export const UNLIMITED: AnswerLease = { untilMs: Number.POSITIVE_INFINITY };

/**
 * The lease of a leader: a quorum followed it when it was last asked, and no other leader began before that.
 *
 *     ping ──► voter follows this leader ──► answer            the lease is counted from the ping
 */
export class LeaderLease implements AnswerLease {
  readonly #serverId: number;
  readonly #leaseMs: number;
  readonly #asked: QuorumWatermark<number>;
  #untilMs = Number.NEGATIVE_INFINITY;

  /** @param leaseMs 0: nothing limits it */
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

  /** A voter has answered what it was sent then. */
  onAnswered(serverId: number, askedMs: number): void {
    this.#asked.raise(serverId, askedMs);
    this.#renew();
  }

  /**
   * Others decide from now on, perhaps this server alone, or not alone any more. What was true until now holds as long as if
   * all of them had just been asked.
   */
  onElectorateChanged(nowMs: number): void {
    this.#asked.raise(this.#serverId, Number.POSITIVE_INFINITY);
    this.#untilMs = Math.min(this.#untilMs, nowMs + this.#leaseMs);
    this.#renew();
  }

  /** What it has answered stays true, but it is asked no more. */
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
 * has that answer: from then on the leader ends no session that this learner may have heard of since.
 *
 *     ping 1 ─► answer 1 ─► … ─► ping 2           the lease is counted from answer 1
 */
export class LearnerLease implements AnswerLease {
  /** 0 while it is not known whether the leader gives leases, and when it gives none. */
  #leaseMs = 0;
  /** When the last answer was sent; null when it did not say everything. */
  #answeredMs: number | null = null;
  #untilMs = Number.POSITIVE_INFINITY;

  get untilMs(): number {
    return this.#untilMs;
  }

  /** True when the leader waits for this learner before it ends a session. */
  get isHeld(): boolean {
    return this.#leaseMs > 0;
  }

  /** The leader gives leases of this length. */
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

  /** @param isComplete false: more sessions were heard of than the answer has room for */
  onAnswering(nowMs: number, isComplete: boolean): void {
    this.#answeredMs = isComplete ? nowMs : null;
  }
}
