import { describe, expect, test } from 'vitest';
import { byAnyClock } from '../base/clock-drift.ts';
import { endsWithItsFirst, LearnerAnswers } from './learner-answers.ts';

const LEASE_MS = 400;
const TIMEOUT_MS = 1000;

/** Whether a session of learner 2 may end that is due at 5000. */
function mayEnd(answers: LearnerAnswers, nowMs: number, owner = 2): boolean {
  return answers.mayEnd(owner, 5000, TIMEOUT_MS, nowMs);
}

function serving(): LearnerAnswers {
  const answers = new LearnerAnswers(LEASE_MS);
  answers.onServing(2, 4000);
  return answers;
}

describe('a session that is due', () => {
  test('ends when its learner has answered a ping that was sent since', () => {
    const answers = serving();
    answers.onAnswered(2, 4900, 5100);
    expect(mayEnd(answers, 5200)).toBe(false);
    answers.onAnswered(2, 5000, 5300);
    expect(mayEnd(answers, 5300)).toBe(true);
  });

  test('of a mute learner ends after its lease and the timeout, by the slowest clock', () => {
    const answers = serving();
    answers.onAnswered(2, 4400, 4500);
    const endMs = 4500 + byAnyClock(LEASE_MS) + TIMEOUT_MS;
    expect(mayEnd(answers, endMs - 1)).toBe(false);
    expect(mayEnd(answers, endMs)).toBe(true);
    expect(endMs).toBeGreaterThan(4500 + LEASE_MS * 1.03 + TIMEOUT_MS);
  });

  test('of a learner whose connection is gone ends as late, even if it has reconnected and talks', () => {
    const answers = serving();
    answers.onAnswered(2, 4400, 4500);
    answers.onClosed(2);
    const endMs = 4500 + byAnyClock(LEASE_MS) + TIMEOUT_MS;
    expect(mayEnd(answers, endMs - 1)).toBe(false);
    answers.onServing(2, 5000);
    answers.onAnswered(2, 5010, 5020);
    expect(mayEnd(answers, endMs - 1)).toBe(false);
    expect(mayEnd(answers, endMs)).toBe(true);
  });

  test('ends at once when its client is at the leader, or at a learner without leases', () => {
    expect(mayEnd(serving(), 5000, -2)).toBe(true);
    expect(mayEnd(serving(), 5000, 7)).toBe(true);
  });
});

test('servers of an earlier epoch may answer for two leases, by the slowest clock', () => {
  expect(new LearnerAnswers(LEASE_MS).graceMs).toBe(2 * byAnyClock(LEASE_MS));
  expect(new LearnerAnswers(0).graceMs).toBe(0);
});

test('an answer without room for all sessions names the first one twice', () => {
  const named = (...ids: readonly number[]) => ids.map((id) => ({ sessionId: BigInt(id), timeoutMs: 1 }));
  expect([named(), named(1), named(1, 2), named(1, 2, 1)].map(endsWithItsFirst)).toEqual([false, false, false, true]);
});
