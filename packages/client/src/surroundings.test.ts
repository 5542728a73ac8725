import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { AbortedError, TimeoutError } from './errors.ts';
import { Budget } from './surroundings.ts';
import { VirtualSurroundings } from './testing/virtual-surroundings.ts';

const about = { operation: 'update', path: '/a' };

describe('the time limit of several requests', () => {
  test('leaves each of them what the ones before have not used', () => {
    const surroundings = new VirtualSurroundings();
    const budget = new Budget({ timeoutMs: 1000 }, surroundings, about);
    expect(budget.next()).toMatchObject({ timeoutMs: 1000 });
    surroundings.nowMs += 600;
    expect(budget.next()).toMatchObject({ timeoutMs: 400 });
    surroundings.nowMs += 400;
    expect(() => budget.next('unknown')).toThrow(TimeoutError);
  });

  test('ends a pause', async () => {
    const surroundings = new VirtualSurroundings();
    const budget = new Budget({ timeoutMs: 1000 }, surroundings, about);
    const pauses = [budget.pause(800), budget.pause(5000)];
    const failure = expect(pauses[1]).rejects.toBeInstanceOf(TimeoutError);
    await surroundings.runTimers();
    await pauses[0];
    await failure;
    expect(surroundings.nowMs).toBe(1000);
  });

  test('may be missing; a signal ends them in any case', async () => {
    const surroundings = new VirtualSurroundings();
    const controller = new AbortController();
    const budget = new Budget({ signal: controller.signal }, surroundings, about);
    surroundings.nowMs += 1e9;
    expect(budget.next()).toEqual({ signal: controller.signal });
    const failure = expect(budget.pause(5000)).rejects.toBeInstanceOf(AbortedError);
    controller.abort();
    await failure;
    expect(surroundings.timerCount).toBe(0);
    expect(() => budget.next()).toThrow(AbortedError);
  });

  test('keeps nothing of a pause that is over at the signal', async () => {
    const surroundings = new VirtualSurroundings();
    const { signal } = new AbortController();
    const budget = new Budget({ signal, timeoutMs: 1000 }, surroundings, about);
    const pauses = [budget.pause(800), budget.pause(900)];
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await surroundings.runTimers();
    await Promise.all(pauses);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
