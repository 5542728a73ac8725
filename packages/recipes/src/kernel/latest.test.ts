import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { Latest, Pulse } from './latest.ts';

const OVER = new Error('over');

describe('a latest value', () => {
  test('yields its current value and each change; a slow loop gets the newest', async () => {
    const latest = new Latest<number>();
    latest.publish(1);
    const values = latest[Symbol.asyncIterator]();
    expect(await values.next()).toEqual({ done: false, value: 1 });
    latest.publish(2);
    latest.publish(3);
    expect(await values.next()).toEqual({ done: false, value: 3 });
    const next = values.next();
    latest.publish(4);
    expect(await next).toEqual({ done: false, value: 4 });
    latest.end(null, OVER);
    expect(await values.next()).toEqual({ done: true, value: undefined });
    expect(latest.current).toBe(4);
  });

  test('that ends with an error yields the pending value, and then throws', async () => {
    const latest = new Latest<number>();
    const values = latest[Symbol.asyncIterator]();
    latest.publish(1);
    latest.end(OVER, OVER);
    latest.publish(2);
    expect(await values.next()).toEqual({ done: false, value: 1 });
    await expect(values.next()).rejects.toBe(OVER);
  });

  test('can be awaited until it matches, or ends', async () => {
    const latest = new Latest<number>();
    const four = latest.when((value) => value === 4);
    const five = latest.when((value) => value === 5);
    for (const value of [3, 4]) {
      latest.publish(value);
      await Promise.resolve();
    }
    expect(await four).toBe(4);
    expect(await latest.when((value) => value === 4)).toBe(4);
    latest.end(null, OVER);
    await expect(five).rejects.toBe(OVER);
    await expect(latest.changed()).rejects.toBe(OVER);
  });

  test('is not missed by a waiter when two come at once', async () => {
    const latest = new Latest<number>();
    const two = latest.when((value) => value === 2);
    latest.publish(1);
    latest.publish(2);
    latest.end(null, OVER);
    expect(await two).toBe(2);
  });

  test('calls no predicate of a cancelled waiter, and leaves no listener on the signal of a served one', async () => {
    const latest = new Latest<number>();
    const asked: string[] = [];
    const limit = new AbortController();
    const fitsLater =
      (name: string) =>
      (value: number): boolean =>
        asked.push(name) > 0 && value === 2;
    const one = latest.when(fitsLater('one'), limit.signal);
    const two = latest.when(fitsLater('two'));
    limit.abort(OVER);
    await expect(one).rejects.toBe(OVER);
    await expect(latest.when(fitsLater('late'), limit.signal)).rejects.toBe(OVER);
    const { signal } = new AbortController();
    const three = latest.when(fitsLater('three'), signal);
    const four = new Latest<number>();
    const ended = four.when(fitsLater('four'), signal);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    latest.publish(1);
    latest.publish(2);
    four.end(null, OVER);
    latest.publish(2);
    expect(await Promise.all([two, three])).toEqual([2, 2]);
    await expect(ended).rejects.toBe(OVER);
    expect(asked).toEqual(['two', 'three', 'two', 'three']);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('reports when a loop is left', async () => {
    let left = 0;
    const latest = new Latest<number>(() => left++);
    latest.publish(1);
    for await (const value of latest) if (value === 1) break;
    expect(left).toBe(1);
  });
});

test('a pulse that was raised without waiters is not lost, and is cleared by reset', async () => {
  const pulse = new Pulse();
  pulse.raise();
  await pulse.wait();
  pulse.reset();
  let isRaised = false;
  const waiting = pulse.wait().then(() => {
    isRaised = true;
  });
  await new Promise(setImmediate);
  expect(isRaised).toBe(false);
  pulse.raise();
  await waiting;
});
