import { expect, onTestFinished, test, vi } from 'vitest';
import { ServersMonitor } from './servers-monitor.ts';

test('samples are kept for ten minutes, and none is taken without a viewer', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const monitor = new ServersMonitor([]);
  onTestFinished(() => monitor.stop());
  const listening = monitor.listen(() => {});
  await vi.advanceTimersByTimeAsync(1_200_000);
  expect(monitor.history).toHaveLength(300);
  const [oldest, newest] = [monitor.history[0]!, monitor.history.at(-1)!];
  expect(newest.atMs - oldest.atMs).toBe(299 * 2000);
  listening[Symbol.dispose]();
  await vi.advanceTimersByTimeAsync(2000);
  const { atMs } = monitor.history.at(-1)!;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(monitor.history.at(-1)!.atMs).toBe(atMs);
});
