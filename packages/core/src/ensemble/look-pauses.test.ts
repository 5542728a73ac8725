import { expect, it } from 'vitest';
import { LookPauses } from './look-pauses.ts';

it('waits longer after each failed role, up to a limit, and not at all after one that led to an epoch', () => {
  const pauses = new LookPauses();
  const taken = Array.from({ length: 8 }, () => {
    pauses.onFailed();
    return pauses.take();
  });
  expect(taken).toEqual([20, 50, 100, 200, 400, 800, 800, 800]);
  pauses.onEstablished();
  expect(pauses.take()).toBe(0);
});

it('has one longer pause when the next role is known to fail', () => {
  const pauses = new LookPauses();
  pauses.extend(1000);
  expect([pauses.take(), pauses.take()]).toEqual([1000, 0]);
});
