import { expect, test } from 'vitest';
import { NODE_CLOCK } from './clock.ts';
import { Turn } from './turn.ts';

test('an error in the core ends its server and is told once', async () => {
  const faults: unknown[] = [];
  const failing = new Turn(NODE_CLOCK, (error) => faults.push(error));
  const error = new Error('a mistake');
  const parts = {
    onTurnEnd() {
      throw error;
    },
    nextDeadlineMs: () => 0,
    onTick() {},
  };
  failing.start(parts, { startEffects: () => false });
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  expect(faults).toEqual([error]);
  expect(failing.isStopped).toBe(true);
});

test('the core is told of its deadline, again when it moves', async () => {
  const ticks: number[] = [];
  const ticking = new Turn(NODE_CLOCK, () => {});
  let deadlineMs = performance.now() + 5;
  const ticked = new Promise<void>((resolve) => {
    const parts = {
      onTurnEnd() {},
      nextDeadlineMs: () => deadlineMs,
      onTick() {
        ticks.push(performance.now() - deadlineMs);
        if (ticks.length === 3) resolve();
        if (performance.now() >= deadlineMs) deadlineMs += 5;
      },
    };
    ticking.start(parts, { startEffects: () => false });
  });
  await ticked;
  ticking.stop();
  expect(ticks.length).toBe(3);
});
