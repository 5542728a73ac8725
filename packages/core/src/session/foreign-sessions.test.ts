import { expect, test } from 'vitest';
import { ForeignSessions } from './foreign-sessions.ts';
import { serverIdOf } from './session-ids.ts';

const OTHERS = 2n << 56n;

test('an ended replicated session counts as no local one until every learner must have received its end', () => {
  const foreign = new ForeignSessions(1, 1000, 0);
  expect(serverIdOf(OTHERS)).toBe(2);
  expect(foreign.mayBeLocal(OTHERS)).toBe(true);
  foreign.onTick(999);
  foreign.onEnded(OTHERS);
  for (const nowMs of [999, 1000, 1998, 1999]) {
    foreign.onTick(nowMs);
    expect(foreign.mayBeLocal(OTHERS), `at ${nowMs} ms`).toBe(false);
  }
  foreign.onTick(3000);
  expect(foreign.mayBeLocal(OTHERS)).toBe(true);
});

test("a session id of the leader itself is never another server's local session", () => {
  expect(new ForeignSessions(2, 1000, 0).mayBeLocal(OTHERS)).toBe(false);
});
