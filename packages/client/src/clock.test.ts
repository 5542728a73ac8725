import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { SYSTEM_CLOCK } from './clock.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

describe('the clock of this machine', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  test.each([1, 24, 25, 50, 60, 400])('fires after %d days, once and not before', (days) => {
    const rung: number[] = [];
    const startMs = SYSTEM_CLOCK.monotonicMs();
    SYSTEM_CLOCK.schedule(days * DAY_MS, () => rung.push(SYSTEM_CLOCK.monotonicMs() - startMs));
    vi.advanceTimersByTime(days * DAY_MS - 1);
    expect(rung).toEqual([]);
    vi.advanceTimersByTime(500 * DAY_MS);
    expect(rung).toEqual([days * DAY_MS]);
  });

  test('does not fire when it was cancelled, on any of its days', () => {
    let isRung = false;
    const cancel = SYSTEM_CLOCK.schedule(60 * DAY_MS, () => {
      isRung = true;
    });
    vi.advanceTimersByTime(30 * DAY_MS);
    cancel();
    vi.advanceTimersByTime(100 * DAY_MS);
    expect([isRung, vi.getTimerCount()]).toEqual([false, 0]);
  });

  test('never fires after an infinite delay', () => {
    let isRung = false;
    const cancel = SYSTEM_CLOCK.schedule(Number.POSITIVE_INFINITY, () => {
      isRung = true;
    });
    vi.advanceTimersByTime(1000 * DAY_MS);
    cancel();
    expect(isRung).toBe(false);
  });
});
