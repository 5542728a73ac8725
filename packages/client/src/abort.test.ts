import { expect, test } from 'vitest';
import { onAbort } from './abort.ts';

test('a signal notifies every listener that is still registered, once and in order, through one listener', () => {
  const controller = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = controller.signal;
  controller.signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
    listeners++;
    addEventListener.apply(controller.signal, args);
  };
  controller.signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
    listeners--;
    removeEventListener.apply(controller.signal, args);
  };
  const told: number[] = [];
  const releases = Array.from({ length: 20 }, (_, i) => onAbort(controller.signal, () => told.push(i)));
  expect(listeners).toBe(1);
  releases.slice(3).forEach((release) => {
    release();
  });
  controller.abort();
  expect(told).toEqual([0, 1, 2]);
});

test('a signal without waiters has no listener, and gets one again', () => {
  const controller = new AbortController();
  const told: string[] = [];
  onAbort(controller.signal, () => told.push('gone'))();
  onAbort(controller.signal, () => told.push('here'));
  controller.abort();
  expect(told).toEqual(['here']);
});

test('a signal that is already aborted calls back at once, and a missing one never', () => {
  const told: string[] = [];
  onAbort(AbortSignal.abort(), () => told.push('aborted'))();
  onAbort(undefined, () => told.push('none'))();
  expect(told).toEqual(['aborted']);
});
