/**
 * What a leader knows of what its learners may have answered to clients, and so which sessions it may end. See
 * docs/leases.md.
 *
 *     a session is due: nothing was heard of it for its timeout
 *        its learner talks    ends when the learner has answered a ping that was sent after that, and has not named it
 *        its learner is mute  ends when the learner's lease is over, and the timeout after that
 */
import type { SessionTimeout } from '@meerkat/protocol';
import { byAnyClock } from '../base/clock-drift.ts';

/** Which sessions may end, as far as others than the server that decides have answered them. */
export interface SessionLeases {
  /** Milliseconds for which servers of an earlier epoch may still answer. */
  readonly graceMs: number;
  /**
   * @param owner whose client it is: a learner's id, or a `SessionOwner`
   * @param dueMs when its timeout was over
   */
  mayEnd(owner: number, dueMs: number, timeoutMs: number, nowMs: number): boolean;
}

/** Where nobody else answers clients, or nobody holds leases. */
export const NO_LEASES: SessionLeases = { graceMs: 0, mayEnd: () => true };

interface Answers {
  /** Until when connections that are closed let it answer; −Infinity when there was none. */
  closedUntilMs: number;
  /** It is connected, and may answer. */
  isServing: boolean;
  /** When the newest ping was sent that it has answered with all it had heard of. */
  askedMs: number;
  /** When that answer came. */
  answeredMs: number;
}

export class LearnerAnswers implements SessionLeases {
  readonly #leaseMs: number;
  /** By server id; only of those that hold leases. */
  readonly #answers: Map<number, Answers> = new Map();

  /** @param leaseMs 0: nobody holds any */
  constructor(leaseMs: number) {
    this.#leaseMs = byAnyClock(leaseMs);
  }

  /** The leader before went on for a lease after its quorum had left it, and its learners for one more. */
  get graceMs(): number {
    return 2 * this.#leaseMs;
  }

  /** A learner that holds leases is told to serve. @param nowMs when its ACK of NEWLEADER came, or later */
  onServing(serverId: number, nowMs: number): void {
    const closedUntilMs = this.#answers.get(serverId)?.closedUntilMs ?? Number.NEGATIVE_INFINITY;
    this.#answers.set(serverId, {
      closedUntilMs,
      isServing: true,
      askedMs: Number.NEGATIVE_INFINITY,
      answeredMs: nowMs,
    });
  }

  onAnswered(serverId: number, askedMs: number, nowMs: number): void {
    const answers = this.#answers.get(serverId);
    if (answers === undefined) return;
    answers.askedMs = askedMs;
    answers.answeredMs = nowMs;
  }

  /** Its connection is gone; perhaps it does not know that yet. */
  onClosed(serverId: number): void {
    const answers = this.#answers.get(serverId);
    if (answers === undefined || !answers.isServing) return;
    answers.isServing = false;
    answers.closedUntilMs = Math.max(answers.closedUntilMs, answers.answeredMs + this.#leaseMs);
  }

  mayEnd(owner: number, dueMs: number, timeoutMs: number, nowMs: number): boolean {
    const answers = this.#answers.get(owner);
    if (answers === undefined) return true;
    const { closedUntilMs, isServing, askedMs, answeredMs } = answers;
    if (nowMs < closedUntilMs + timeoutMs) return false;
    if (!isServing || askedMs >= dueMs) return true;
    return nowMs >= answeredMs + this.#leaseMs + timeoutMs;
  }
}

/**
 * True of an answer to a ping that has no room for all sessions that the learner has heard of: it names the first one again
 * at the end, which changes nothing for those who do not look.
 */
export function endsWithItsFirst(sessions: readonly SessionTimeout[]): boolean {
  return sessions.length > 1 && sessions.at(-1)!.sessionId === sessions[0]!.sessionId;
}
