import { expect, test } from 'vitest';
import { LearnerSessions } from './learner-sessions.ts';

test('sessions that are too many for one answer to a ping come first in the next one, each once', () => {
  const sessions = new LearnerSessions(new Map(), () => {});
  const open = (id: number): unknown => sessions.open(BigInt(id), 4000, 0);
  const take = (countMax: number): number[] => sessions.takeTouched(countMax).map(({ sessionId }) => Number(sessionId));
  for (const id of [1, 2, 3, 4, 5]) open(id);
  expect(take(2)).toEqual([1, 2]);
  // One was told and is heard of again, one has not been told yet.
  for (const id of [1, 4]) open(id);
  expect(take(2)).toEqual([3, 4]);
  expect(take(2)).toEqual([5, 1]);
  expect(take(2)).toEqual([]);
});
