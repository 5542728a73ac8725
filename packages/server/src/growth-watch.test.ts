import type { StatsFs, statfs } from 'node:fs';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { GrowthWatch } from './growth-watch.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

type StatfsCallback = (error: Error | null, found: Pick<StatsFs, 'bavail' | 'bsize'>) => void;

const OPTIONS = { residentBytesMax: 0, diskFreeBytesMin: 100, dataDirectory: '/data', dataLogDirectory: '/log' };

test('a disk that does not answer is asked once, and again after its answer', () => {
  const questions: StatfsCallback[] = [];
  const refusals: (string | null)[] = [];
  const watch = new GrowthWatch(OPTIONS, {
    statfs: ((_path: string, callback: StatfsCallback) => questions.push(callback)) as unknown as typeof statfs,
    onGrowth: (refusal) => refusals.push(refusal),
  });
  watch.start();
  vi.advanceTimersByTime(60_000);
  expect(questions).toHaveLength(2);
  for (const callback of questions.splice(0)) callback(null, { bavail: 99, bsize: 1 });
  expect(refusals).toEqual([expect.stringContaining('/data')]);
  vi.advanceTimersByTime(1000);
  expect(questions).toHaveLength(2);
  watch.stop();
});

test('a late answer of a disk with room does not allow what the memory forbids', () => {
  const questions: StatfsCallback[] = [];
  const refusals: (string | null)[] = [];
  const memory = vi.spyOn(process.memoryUsage, 'rss').mockReturnValue(50);
  const watch = new GrowthWatch(
    { ...OPTIONS, residentBytesMax: 100 },
    {
      statfs: ((_path: string, callback: StatfsCallback) => questions.push(callback)) as unknown as typeof statfs,
      onGrowth: (refusal) => refusals.push(refusal),
    },
  );
  watch.start();
  memory.mockReturnValue(200);
  vi.advanceTimersByTime(1000);
  expect(refusals).toEqual([expect.stringContaining('memory')]);
  for (const callback of questions.splice(0)) callback(null, { bavail: 1000, bsize: 1 });
  expect(refusals.at(-1)).toContain('memory');
  watch.stop();
  memory.mockRestore();
});
