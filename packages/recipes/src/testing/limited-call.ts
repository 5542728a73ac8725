import type { CallOptions } from '@meerkat/client';
import { expect } from 'vitest';
import type { Fleet } from './fleet.ts';

/**
 * Does something with a time limit or a signal, by chance, and looks whether it ends in time.
 *
 * @param haste how probable a limit is
 */
export async function underLimit<T>(
  { world }: Fleet,
  haste: number,
  work: (call: CallOptions) => Promise<T>,
  limitMaxMs = 1500,
): Promise<T> {
  if (!world.random.chance(haste)) return work({});
  const limitMs = world.random.between(0, limitMaxMs);
  const { nowMs } = world;
  const controller = new AbortController();
  const hasSignal = world.random.chance(0.5);
  if (hasSignal) void world.sleep(limitMs).then(() => controller.abort());
  try {
    return await work(hasSignal ? { signal: controller.signal } : { timeoutMs: limitMs });
  } finally {
    expect(world.nowMs - nowMs, 'how long it takes under a limit').toBeLessThanOrEqual(limitMs + SLACK_MS);
  }
}

/** Clocks of clients are not as exact as the world's. */
const SLACK_MS = 100;
