import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ProcessClock } from './process-clock.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterEach(() => {
  vi.useRealTimers();
});

let nowMs = 5000;

/** The process works, and its timers fire. */
function work(ms: number): void {
  for (const end = nowMs + ms; nowMs < end; ) {
    nowMs += 10;
    vi.advanceTimersByTime(10);
  }
}

test('counts the time in which the process works, and next to nothing of that in which it stands still', () => {
  const clock = new ProcessClock(() => nowMs, globalThis);
  const startMs = clock.monotonicMs();
  work(3000);
  expect(clock.monotonicMs() - startMs).toBe(3000);
  nowMs += 60_000;
  expect(clock.monotonicMs() - startMs).toBe(3040);
  nowMs += 60_000;
  // The timer fires before anybody reads the clock.
  vi.advanceTimersByTime(20);
  expect(clock.monotonicMs() - startMs).toBe(3080);
  work(1000);
  expect(clock.monotonicMs() - startMs).toBe(4080);
});

test('has a timer as long as it is read, and counts all time beyond', () => {
  const clock = new ProcessClock(() => nowMs, globalThis);
  expect(vi.getTimerCount()).toBe(0);
  const startMs = clock.monotonicMs();
  work(9000);
  expect(vi.getTimerCount()).toBe(1);
  clock.monotonicMs();
  work(9000);
  expect(vi.getTimerCount()).toBe(1);
  work(2000);
  expect(vi.getTimerCount()).toBe(0);
  nowMs += 60_000;
  expect(clock.monotonicMs() - startMs).toBe(80_000);
  expect(vi.getTimerCount()).toBe(1);
});

test('does not go back', () => {
  const clock = new ProcessClock(() => nowMs, globalThis);
  const startMs = clock.monotonicMs();
  work(100);
  nowMs -= 3000;
  expect(clock.monotonicMs() - startMs).toBe(100);
  work(100);
  nowMs += 2900;
  expect(clock.monotonicMs() - startMs).toBe(240);
});

test('shows the time of the process while a test has put another one in its place', () => {
  const clock = new ProcessClock();
  const startMs = clock.monotonicMs();
  vi.useFakeTimers({ now: 0 });
  vi.advanceTimersByTime(1_000_000);
  const fakedMs = clock.monotonicMs();
  expect(fakedMs).toBeGreaterThanOrEqual(startMs);
  expect(fakedMs).toBeLessThan(startMs + 500_000);
  vi.useRealTimers();
  expect(clock.monotonicMs()).toBeGreaterThanOrEqual(fakedMs);
});
