import { describe, expect, test } from 'vitest';
import { LearnerSessions } from './learner-sessions.ts';
import type { ResumingClient } from './revalidations.ts';
import type { Session } from './session.ts';

test('sessions that are too many for one answer to a ping come first in the next one, each once', () => {
  const sessions = new LearnerSessions(new Map(), () => {});
  const open = (id: number): unknown => sessions.open(BigInt(id), 4000, 0);
  const take = (countMax: number): number[] =>
    sessions.takeTouched(countMax, 0).map(({ sessionId }) => Number(sessionId));
  for (const id of [1, 2, 3, 4, 5]) open(id);
  expect(take(2)).toEqual([1, 2]);
  // One was told and is heard of again, one has not been told yet.
  for (const id of [1, 4]) open(id);
  expect(take(2)).toEqual([3, 4]);
  expect(take(2)).toEqual([5, 1]);
  expect(take(2)).toEqual([]);
});

test('what observers behind this server have heard of is told with the next answer that has room for it, once', () => {
  const sessions = new LearnerSessions(new Map(), () => {});
  const take = (countMax: number): number[] =>
    sessions.takeTouched(countMax, 0).map(({ sessionId }) => Number(sessionId));
  sessions.open(1n, 4000, 0);
  sessions.relayTouched([2, 3].map((id) => ({ sessionId: BigInt(id), timeoutMs: 4000 })));
  expect(take(2)).toEqual([1, 2]);
  expect(take(2)).toEqual([3]);
  expect(take(2)).toEqual([]);
});

describe('a learner whose leader waits for its word', () => {
  function leased(): LearnerSessions {
    const sessions = new LearnerSessions(new Map(), () => {});
    sessions.holdsLeases = true;
    return sessions;
  }

  test('takes nothing of a session that has been silent for so long that the leader may end it', () => {
    const sessions = leased();
    const session = sessions.open(1n, 4000, 0);
    expect(sessions.touch(session, 3800)).toBe(true);
    // By the slowest clock 4000 ms have passed for the leader.
    expect(sessions.touch(session, 3800 + 3900)).toBe(false);
  });

  test('does not take what it hears after an answer for older than that', () => {
    const sessions = leased();
    const session = sessions.open(1n, 4000, 0);
    sessions.takeTouched(10, 3900);
    // In a turn that had begun long before.
    expect(sessions.touch(session, 100)).toBe(false);
  });

  test('counts from the question about a session that comes back', () => {
    const sessions = leased();
    const resumed: Session[] = [];
    const client = { isOpen: true, onSessionResumed: (session: Session) => resumed.push(session) };
    sessions.revalidations.ask(client as unknown as ResumingClient, 1n, 4000, 1000);
    sessions.takeTouched(10, 4800);
    sessions.revalidations.onRevalidated(1n, true);
    expect(sessions.touch(resumed[0]!, 4900)).toBe(false);
  });

  test('says when an answer has no room for all: it names the first session twice', () => {
    const sessions = leased();
    for (const id of [1n, 2n, 3n]) sessions.open(id, 4000, 0);
    const idsOf = (told: readonly { readonly sessionId: bigint }[]) => told.map(({ sessionId }) => sessionId);
    expect(idsOf(sessions.takeTouched(2, 0))).toEqual([1n, 1n]);
    expect(idsOf(sessions.takeTouched(2, 0))).toEqual([2n, 3n]);
  });
});
