import { describe, expect, test } from 'vitest';
import { LearnerSessions } from './learner-sessions.ts';
import type { ResumingClient } from './revalidations.ts';
import type { Session } from './session.ts';

test('sessions that do not fit into one ping reply come first in the next one, without duplicates', () => {
  const sessions = new LearnerSessions(new Map(), () => {});
  const open = (id: number): unknown => sessions.open(BigInt(id), 4000, 0);
  const take = (countMax: number): number[] =>
    sessions.takeTouched(countMax, 0).map(({ sessionId }) => Number(sessionId));
  for (const id of [1, 2, 3, 4, 5]) open(id);
  expect(take(2)).toEqual([1, 2]);
  // 1 was reported and is touched again; 4 has not been reported yet.
  for (const id of [1, 4]) open(id);
  expect(take(2)).toEqual([3, 4]);
  expect(take(2)).toEqual([5, 1]);
  expect(take(2)).toEqual([]);
});

test('sessions touched at observers of this server are reported once, in the next reply with room', () => {
  const sessions = new LearnerSessions(new Map(), () => {});
  const take = (countMax: number): number[] =>
    sessions.takeTouched(countMax, 0).map(({ sessionId }) => Number(sessionId));
  sessions.open(1n, 4000, 0);
  sessions.relayTouched([2, 3].map((id) => ({ sessionId: BigInt(id), timeoutMs: 4000 })));
  expect(take(2)).toEqual([1, 2]);
  expect(take(2)).toEqual([3]);
  expect(take(2)).toEqual([]);
});

test('the ids of known sessions are taken, also that of one whose createSession is not applied yet', () => {
  const sessions = new LearnerSessions(new Map([[1n, 4000]]), () => {});
  sessions.open(2n, 4000, 0);
  expect([1n, 2n, 3n].map((id) => sessions.isTaken(id))).toEqual([true, true, false]);
});

describe('a learner that holds leases', () => {
  function leased(): LearnerSessions {
    const sessions = new LearnerSessions(new Map(), () => {});
    sessions.holdsLeases = true;
    return sessions;
  }

  test('refuses requests of a session that has been silent for so long that the leader may expire it', () => {
    const sessions = leased();
    const session = sessions.open(1n, 4000, 0);
    expect(sessions.touch(session, 3800)).toBe(true);
    // With the largest clock drift, 4000 ms have passed on the leader.
    expect(sessions.touch(session, 3800 + 3900)).toBe(false);
  });

  test('counts a touch after a report as not older than that', () => {
    const sessions = leased();
    const session = sessions.open(1n, 4000, 0);
    sessions.takeTouched(10, 3900);
    // In a turn that began long before.
    expect(sessions.touch(session, 100)).toBe(false);
  });

  test('counts from the question when a session is revalidated', () => {
    const sessions = leased();
    const resumed: Session[] = [];
    const client = { isOpen: true, onSessionResumed: (session: Session) => resumed.push(session) };
    sessions.revalidations.ask(client as unknown as ResumingClient, 1n, 4000, 1000);
    sessions.takeTouched(10, 4800);
    sessions.revalidations.onRevalidated(1n, true);
    expect(sessions.touch(resumed[0]!, 4900)).toBe(false);
  });

  test('marks an incomplete reply by listing the first session twice', () => {
    const sessions = leased();
    for (const id of [1n, 2n, 3n]) sessions.open(id, 4000, 0);
    const idsOf = (reported: readonly { readonly sessionId: bigint }[]) => reported.map(({ sessionId }) => sessionId);
    expect(idsOf(sessions.takeTouched(2, 0))).toEqual([1n, 1n]);
    expect(idsOf(sessions.takeTouched(2, 0))).toEqual([2n, 3n]);
  });
});
