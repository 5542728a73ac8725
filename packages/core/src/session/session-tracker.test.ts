import { describe, expect, it } from 'vitest';
import { Session } from './session.ts';
import { SessionTracker } from './session-tracker.ts';

const TICK_MS = 1000;

function ticked(tracker: SessionTracker, fromMs: number, toMs: number): { at: number; ids: bigint[] }[] {
  const told: { at: number; ids: bigint[] }[] = [];
  for (let at = fromMs; at <= toMs; at += 100) {
    const ids = tracker.onTick(at).map((session) => session.id);
    if (ids.length > 0) told.push({ at, ids });
  }
  return told;
}

describe('SessionTracker', () => {
  it('expires a session at the first tick after its timeout, never before', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    tracker.add(new Session(1n, 3000), 200);
    expect(ticked(tracker, 200, 9000)).toEqual([{ at: 4000, ids: [1n] }]);
  });

  it('begins the whole timeout anew when a session is touched', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    const session = new Session(1n, 3000);
    tracker.add(session, 0);
    expect(ticked(tracker, 0, 2500)).toEqual([]);
    tracker.touch(session, 2500);
    expect(ticked(tracker, 2600, 9000)).toEqual([{ at: 6000, ids: [1n] }]);
  });

  it('expires sessions of one bucket together', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    tracker.add(new Session(1n, 3000), 100);
    tracker.add(new Session(2n, 3000), 900);
    expect(ticked(tracker, 1000, 9000)).toEqual([{ at: 4000, ids: [1n, 2n] }]);
  });

  it('does not expire a closing session a second time', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    const session = new Session(1n, 3000);
    tracker.add(session, 0);
    tracker.setClosing(session);
    expect(ticked(tracker, 0, 9000)).toEqual([]);
    expect(tracker.get(1n)).toBe(session);
  });

  it('takes a shorter timeout at once', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    const session = new Session(1n, 30_000);
    tracker.add(session, 0);
    tracker.setTimeoutMs(session, 2000, 0);
    expect(ticked(tracker, 0, 9000)).toEqual([{ at: 3000, ids: [1n] }]);
  });

  it('gives the clients a tick to be heard when the process itself was stopped', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    const heard = new Session(1n, 3000);
    tracker.add(heard, 0);
    tracker.add(new Session(2n, 3000), 0);
    tracker.onTick(1000);
    expect(tracker.onTick(60_000)).toEqual([]);
    tracker.touch(heard, 60_050); // its ping waited in the kernel meanwhile
    expect(ticked(tracker, 60_100, 62_000)).toEqual([{ at: 62_000, ids: [2n] }]);
  });
});
