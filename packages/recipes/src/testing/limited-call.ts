import type { CallOptions } from '@meerkat/client';
import { expect } from 'vitest';
import type { Fleet } from './fleet.ts';

/**
 * Runs a call with a random timeout or signal, and checks that it ends in time.
 *
 * @param haste probability of a limit
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
