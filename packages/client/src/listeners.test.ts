import { afterEach, expect, test } from 'vitest';
import { Listeners } from './listeners.ts';
import { drainMicrotasks } from './testing/virtual-surroundings.ts';

test('a listener is called with values in order, and never synchronously', async () => {
  const received: string[] = [];
  const listeners = new Listeners<string>();
  listeners.add((value) => received.push(value));

  listeners.notify('one');
  listeners.notify('two');

  expect(received).toEqual([]);
  await drainMicrotasks();
  expect(received).toEqual(['one', 'two']);
});

test('the same listener registered twice is called once', async () => {
  const received: string[] = [];
  const listeners = new Listeners<string>();
  const listener = (value: string): void => void received.push(value);
  listeners.add(listener);
  listeners.add(listener);

  listeners.notify('hello');
  await drainMicrotasks();

  expect(received).toEqual(['hello']);
  expect(listeners.size).toBe(1);
});

test('a listener stays until each of its registrations is disposed', async () => {
  const received: string[] = [];
  const listeners = new Listeners<string>();
  const listener = (value: string): void => void received.push(value);
  const first = listeners.add(listener);
  const second = listeners.add(listener);

  first[Symbol.dispose]();
  first[Symbol.dispose]();
  listeners.notify('still there');
  await drainMicrotasks();
  second[Symbol.dispose]();
  listeners.notify('gone');
  await drainMicrotasks();

  expect(received).toEqual(['still there']);
  expect(listeners.size).toBe(0);
});

test('a listener gets nothing that was reported before it was added or after it was removed', async () => {
  const received: string[] = [];
  const listeners = new Listeners<string>();
  const going = listeners.add((value) => received.push(`going ${value}`));

  listeners.notify('first');
  going[Symbol.dispose]();
  listeners.add((value) => received.push(`coming ${value}`));
  await drainMicrotasks();
  listeners.notify('second');
  await drainMicrotasks();

  expect(received).toEqual(['coming second']);
});

test('a listener that throws causes a separate uncaught exception and does not affect other listeners', async () => {
  const uncaught = catchUncaught();
  const received: string[] = [];
  const listeners = new Listeners<string>();
  listeners.add(() => {
    throw new Error('a mistake in a listener');
  });
  listeners.add((value) => received.push(value));

  listeners.notify('one');
  listeners.notify('two');
  await drainMicrotasks();

  expect(received).toEqual(['one', 'two']);
  expect(uncaught).toEqual([new Error('a mistake in a listener'), new Error('a mistake in a listener')]);
});

const restores: (() => void)[] = [];

afterEach(() => {
  for (const restore of restores.splice(0)) restore();
});

/** Collects the uncaught exceptions of this process instead of its usual handlers, until the test ends. */
function catchUncaught(): unknown[] {
  const caught: unknown[] = [];
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => caught.push(error));
  restores.push(() => {
    process.removeAllListeners('uncaughtException');
    for (const other of others) process.on('uncaughtException', other);
  });
  return caught;
}
