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
  const calls: number[] = [];
  const releases = Array.from({ length: 20 }, (_, i) => onAbort(controller.signal, () => calls.push(i)));
  expect(listeners).toBe(1);
  releases.slice(3).forEach((release) => {
    release();
  });
  controller.abort();
  expect(calls).toEqual([0, 1, 2]);
});

test('a signal without waiters has no listener, and gets one again', () => {
  const controller = new AbortController();
  const calls: string[] = [];
  onAbort(controller.signal, () => calls.push('gone'))();
  onAbort(controller.signal, () => calls.push('here'));
  controller.abort();
  expect(calls).toEqual(['here']);
});

test('a signal that is already aborted calls back at once, and a missing one never', () => {
  const calls: string[] = [];
  onAbort(AbortSignal.abort(), () => calls.push('aborted'))();
  onAbort(undefined, () => calls.push('none'))();
  expect(calls).toEqual(['aborted']);
});
