import { afterEach, expect, test } from 'vitest';
import { Listeners } from './listeners.ts';
import { drainMicrotasks } from './testing/virtual-surroundings.ts';

test('a listener is called with values in order, and never synchronously', async () => {
  const heard: string[] = [];
  const listeners = new Listeners<string>();
  listeners.add((value) => heard.push(value));

  listeners.tell('one');
  listeners.tell('two');

  expect(heard).toEqual([]);
  await drainMicrotasks();
  expect(heard).toEqual(['one', 'two']);
});

test('the same listener registered twice is called once', async () => {
  const heard: string[] = [];
  const listeners = new Listeners<string>();
  const listener = (value: string): void => void heard.push(value);
  listeners.add(listener);
  listeners.add(listener);

  listeners.tell('hello');
  await drainMicrotasks();

  expect(heard).toEqual(['hello']);
  expect(listeners.size).toBe(1);
});

test('a listener stays until each of its registrations is disposed', async () => {
  const heard: string[] = [];
  const listeners = new Listeners<string>();
  const listener = (value: string): void => void heard.push(value);
  const first = listeners.add(listener);
  const second = listeners.add(listener);

  first[Symbol.dispose]();
  first[Symbol.dispose]();
  listeners.tell('still there');
  await drainMicrotasks();
  second[Symbol.dispose]();
  listeners.tell('gone');
  await drainMicrotasks();

  expect(heard).toEqual(['still there']);
  expect(listeners.size).toBe(0);
});

test('a listener gets nothing that was reported before it was added or after it was removed', async () => {
  const heard: string[] = [];
  const listeners = new Listeners<string>();
  const going = listeners.add((value) => heard.push(`going ${value}`));

  listeners.tell('first');
  going[Symbol.dispose]();
  listeners.add((value) => heard.push(`coming ${value}`));
  await drainMicrotasks();
  listeners.tell('second');
  await drainMicrotasks();

  expect(heard).toEqual(['coming second']);
});

test('a listener that throws causes a separate uncaught exception and does not affect other listeners', async () => {
  const uncaught = catchUncaught();
  const heard: string[] = [];
  const listeners = new Listeners<string>();
  listeners.add(() => {
    throw new Error('a mistake in a listener');
  });
  listeners.add((value) => heard.push(value));

  listeners.tell('one');
  listeners.tell('two');
  await drainMicrotasks();

  expect(heard).toEqual(['one', 'two']);
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
