import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Session } from './session.ts';
import { SessionTracker } from './session-tracker.ts';

const TICK_MS = 1000;

function ticked(tracker: SessionTracker, fromMs: number, toMs: number): { at: number; ids: bigint[] }[] {
  const expired: { at: number; ids: bigint[] }[] = [];
  for (let at = fromMs; at <= toMs; at += 100) {
    tracker.onTick(at);
    const ids = takeAll(tracker, at);
    if (ids.length > 0) expired.push({ at, ids });
  }
  return expired;
}

function takeAll(tracker: SessionTracker, nowMs: number): bigint[] {
  const ids: bigint[] = [];
  for (let session = tracker.takeDue(nowMs); session !== null; session = tracker.takeDue(nowMs)) ids.push(session.id);
  return ids;
}

describe('SessionTracker', () => {
  it('expires a session at the first tick after its timeout, never before', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    tracker.add(new Session(1n, 3000), 200);
    expect(ticked(tracker, 200, 9000)).toEqual([{ at: 4000, ids: [1n] }]);
  });

  it('restarts the full timeout when a session is touched', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    const session = new Session(1n, 3000);
    tracker.add(session, 0);
    expect(ticked(tracker, 0, 2500)).toEqual([]);
    tracker.touch(session, 2500);
    expect(ticked(tracker, 2600, 9000)).toEqual([{ at: 6000, ids: [1n] }]);
  });

  it('knows when the timeout after the last touch is over, also within the tick of an earlier touch', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    const session = new Session(1n, 3000);
    tracker.add(session, 100);
    expect(session.dueMs).toBe(3100);
    tracker.touch(session, 900);
    expect(session.dueMs).toBe(3900);
    expect(ticked(tracker, 1000, 9000)).toEqual([{ at: 4000, ids: [1n] }]);
    tracker.touch(session, 9100);
    expect(session.dueMs).toBe(12_100);
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

  it('reports a session as live until it is closing, and an unknown one as not live', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    const session = new Session(1n, 3000);
    expect(tracker.isLive(1n)).toBe(false);
    tracker.add(session, 0);
    expect(tracker.isLive(1n)).toBe(true);
    tracker.setClosing(session);
    expect(tracker.isLive(1n)).toBe(false);
    tracker.remove(session);
    expect(tracker.isLive(1n)).toBe(false);
  });

  it('takes a shorter timeout at once', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    const session = new Session(1n, 30_000);
    tracker.add(session, 0);
    tracker.setTimeoutMs(session, 2000, 0);
    expect(ticked(tracker, 0, 9000)).toEqual([{ at: 3000, ids: [1n] }]);
  });

  it.each([0, -1, -(2 ** 31)])('expires a session with the invalid timeout %d at the next tick', (timeoutMs) => {
    const tracker = new SessionTracker(TICK_MS, 0);
    const session = new Session(2n, 3000);
    tracker.add(new Session(1n, timeoutMs), 200);
    tracker.add(session, 200);
    expect(tracker.move(2n, 1, timeoutMs, 300)).toBe(session);
    expect(ticked(tracker, 300, 9000)).toEqual([{ at: 1000, ids: [1n, 2n] }]);
  });

  it('gives clients one more tick after the process was suspended', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    const touched = new Session(1n, 3000);
    tracker.add(touched, 0);
    tracker.add(new Session(2n, 3000), 0);
    tracker.onTick(1000);
    tracker.onTick(60_000);
    expect(tracker.takeDue(60_000)).toBeNull();
    tracker.touch(touched, 60_050); // its ping was in a kernel buffer meanwhile
    expect(ticked(tracker, 60_100, 62_000)).toEqual([{ at: 62_000, ids: [2n] }]);
  });

  it('returns due sessions one by one, and keeps those alive that are touched meanwhile', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    const sessions = Array.from({ length: 20_000 }, (_, i) => new Session(BigInt(i), 3000));
    for (const session of sessions) tracker.add(session, 0);
    for (const at of [1000, 2000, 3000, 4000]) tracker.onTick(at);
    for (let i = 0; i < 10; i++) expect(tracker.takeDue(4000)?.id).toBe(BigInt(i));
    // The remaining ones are still due.
    expect(tracker.nextDeadlineMs).toBeLessThanOrEqual(4000);
    tracker.touch(sessions[10]!, 4001);
    tracker.setClosing(sessions[11]!);
    tracker.remove(sessions[12]!);
    tracker.setTimeoutMs(sessions[13]!, 1000, 4001);
    expect(takeAll(tracker, 4002)).toHaveLength(20_000 - 14);
    expect(tracker.nextDeadlineMs).toBe(5000);
    expect(ticked(tracker, 4100, 9000)).toEqual([
      { at: 6000, ids: [13n] },
      { at: 8000, ids: [10n] },
    ]);
  });

  it('gives the remaining due sessions one more tick after the process was suspended in between', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    for (let id = 1n; id <= 4n; id++) tracker.add(new Session(id, 3000), 0);
    for (const at of [1000, 2000, 3000, 4000]) tracker.onTick(at);
    expect(tracker.takeDue(4000)?.id).toBe(1n);
    tracker.onTick(60_000);
    expect(tracker.takeDue(60_000)).toBeNull();
    expect(ticked(tracker, 60_100, 64_000)).toEqual([{ at: 62_000, ids: [2n, 3n, 4n] }]);
  });

  it('expires those of the next tick, too, when the process is suspended while due ones are taken', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    for (let id = 1n; id <= 2n; id++) tracker.add(new Session(id, 3000), 0);
    tracker.add(new Session(3n, 5500), 0);
    for (const at of [1000, 2000, 3000, 4000]) tracker.onTick(at);
    expect(tracker.takeDue(4000)?.id).toBe(1n);
    tracker.onTick(5600);
    expect(ticked(tracker, 5700, 9000)).toEqual([
      { at: 6000, ids: [3n] },
      { at: 7000, ids: [2n] },
    ]);
  });

  it('keeps the sessions of the tick to which it postpones others', () => {
    const tracker = new SessionTracker(TICK_MS, 0);
    tracker.add(new Session(1n, 3000), 0);
    tracker.add(new Session(2n, 5500), 0);
    for (const at of [1000, 2000, 3000]) tracker.onTick(at);
    tracker.onTick(4600);
    expect(ticked(tracker, 4700, 9000)).toEqual([{ at: 6000, ids: [2n, 1n] }]);
  });

  it('expires every session once, and none before its timeout, whatever the pauses of the process', () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ kind: fc.constant('tick'), ms: fc.constantFrom(300, 1000, 1400) }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('tick'), ms: fc.integer({ min: 1501, max: 5000 }) }) },
      {
        weight: 4,
        arbitrary: fc.record({ kind: fc.constantFrom('add', 'touch'), ms: fc.integer({ min: 0, max: 4000 }) }),
      },
      fc.record({ kind: fc.constantFrom('setTimeout', 'setClosing', 'remove'), ms: fc.integer({ min: 0, max: 4000 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const tracker = new SessionTracker(TICK_MS, 0);
        const live: Session[] = [];
        let nowMs = 0;
        let nextId = 1n;
        const tick = (ms: number): void => {
          nowMs += ms;
          tracker.onTick(nowMs);
          for (let due = tracker.takeDue(nowMs); due !== null; due = tracker.takeDue(nowMs)) {
            expect(live).toContain(due);
            expect(nowMs).toBeGreaterThanOrEqual(due.dueMs);
            live.splice(live.indexOf(due), 1);
            tracker.remove(due);
          }
        };
        for (const { kind, ms } of steps) {
          const session = live[ms % Math.max(live.length, 1)];
          if (kind === 'tick') tick(ms);
          else if (kind === 'add') {
            live.push(new Session(nextId++, ms));
            tracker.add(live.at(-1)!, nowMs);
          } else if (session === undefined) continue;
          else if (kind === 'touch') tracker.touch(session, nowMs);
          else if (kind === 'setTimeout') tracker.setTimeoutMs(session, ms, nowMs);
          else {
            if (kind === 'remove') tracker.remove(session);
            else tracker.setClosing(session);
            live.splice(live.indexOf(session), 1);
          }
        }
        // The longest timeout, and two ticks more if the last one was late.
        for (let ticks = 0; ticks < 7; ticks++) tick(TICK_MS);
        expect(live).toEqual([]);
      }),
    );
  });
});
