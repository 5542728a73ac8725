/**
 * Decides which sessions a leader may end, given what its learners may still have answered to clients. See
 * docs/leases.md.
 *
 *     a session is due: it was not active for its timeout
 *        its learner talks    ends when the learner has answered a ping sent after that without naming the session
 *        its learner is mute  ends when the learner's lease is over, and the timeout after that
 */
import type { SessionTimeout } from '@meerkat/protocol';
import { byAnyClock } from '../base/clock-drift.ts';

/** Which sessions may end, considering the answers of servers other than the one that decides. */
export interface SessionLeases {
  /** Milliseconds for which servers of an earlier epoch may still answer. */
  readonly graceMs: number;
  /**
   * @param owner the server whose client it is: a learner's id, or a `SessionOwner`
   * @param dueMs when its timeout expired
   */
  mayEnd(owner: number, dueMs: number, timeoutMs: number, nowMs: number): boolean;
}

/** For a server that alone answers clients, or an ensemble without leases. */
export const NO_LEASES: SessionLeases = { graceMs: 0, mayEnd: () => true };

interface Answers {
  /** Until when leases from closed connections let it answer; −Infinity when there was none. */
  closedUntilMs: number;
  /** It is connected, and may answer. */
  isServing: boolean;
  /** When the newest ping was sent whose answer listed all active sessions. */
  askedMs: number;
  /** When that answer arrived. */
  answeredMs: number;
}

export class LearnerAnswers implements SessionLeases {
  readonly #leaseMs: number;
  /** By server id; only of those that hold leases. */
  readonly #answers: Map<number, Answers> = new Map();

  /** @param leaseMs 0: there are no leases */
  constructor(leaseMs: number) {
    this.#leaseMs = byAnyClock(leaseMs);
  }

  /** A previous leader may answer for one lease after its quorum has left it, and its learners for one more. */
  get graceMs(): number {
    return 2 * this.#leaseMs;
  }

  /** A learner that holds leases is told to serve. @param nowMs when its ACK of NEWLEADER arrived, or later */
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

  /** Its connection is gone, which it may not have noticed yet. */
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
 * True of an answer to a ping that has no room for all active sessions: it repeats the first one at the end, which
 * other servers ignore.
 */
export function endsWithItsFirst(sessions: readonly SessionTimeout[]): boolean {
  return sessions.length > 1 && sessions.at(-1)!.sessionId === sessions[0]!.sessionId;
}
