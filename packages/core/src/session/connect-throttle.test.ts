import { expect, test } from 'vitest';
import { DEFAULT_LIMIT_OPTIONS } from '../base/limit-options.ts';
import { ConnectThrottle } from './connect-throttle.ts';

const { connecting } = DEFAULT_LIMIT_OPTIONS;
/** Always draws a value just above the minimum. */
const random = { uint32: () => 1 };

test('the bucket provides its tokens, and is refilled over time', () => {
  const throttle = new ConnectThrottle({ ...connecting, tokens: 3, fillTimeMs: 1000, fillCount: 2 }, random, 0);
  expect([1, 2, 3, 4].map(() => throttle.take('new', 0))).toEqual([true, true, true, false]);
  expect([1, 2, 3].map(() => throttle.take('new', 1001))).toEqual([true, true, false]);
  expect([1, 2, 3, 4].map(() => throttle.take('new', 60_000))).toEqual([true, true, true, false]);
});

test('new, resumed and local sessions cost different numbers of tokens', () => {
  const weights = { hasWeights: true, newSessionTokens: 4, renewedSessionTokens: 2, localSessionTokens: 1 };
  const throttle = new ConnectThrottle({ ...connecting, tokens: 7, fillTimeMs: 1000, ...weights }, random, 0);
  expect(throttle.take('new', 0)).toBe(true);
  expect(throttle.take('new', 0)).toBe(false);
  expect(throttle.take('renewed', 0)).toBe(true);
  expect(throttle.take('local', 0)).toBe(true);
  expect(throttle.take('local', 0)).toBe(false);
});

test('the drop probability rises while the bucket is empty and falls while it is nearly full, once per freeze time', () => {
  const options = {
    ...connecting,
    tokens: 1,
    fillTimeMs: 100,
    freezeTimeMs: 10,
    dropIncrease: 0.5,
    dropDecrease: 0.25,
  };
  const throttle = new ConnectThrottle(options, random, 0);
  expect(throttle.take('new', 0)).toBe(true);
  for (const nowMs of [11, 21]) {
    expect(throttle.take('new', nowMs)).toBe(false);
    expect(throttle.dropChance).toBe(0.5);
  }
  expect(throttle.take('new', 22)).toBe(false);
  expect(throttle.dropChance).toBe(1);
  for (const nowMs of [200, 210]) {
    expect(throttle.take('new', nowMs)).toBe(false);
    expect(throttle.dropChance).toBe(0.75);
  }
});

test('a connect is dropped with the drop probability only, and the next one may get its token', () => {
  let drawn = 2 ** 31 - 1;
  const options = { ...connecting, tokens: 1, fillTimeMs: 100, freezeTimeMs: 10, dropIncrease: 0.5, dropDecrease: 0 };
  const throttle = new ConnectThrottle(options, { uint32: () => drawn }, 0);
  expect(throttle.take('new', 0)).toBe(true);
  expect(throttle.take('new', 10)).toBe(false);
  expect(throttle.dropChance, 'the freeze time must be over').toBe(0);
  expect(throttle.take('new', 11)).toBe(false);
  expect(throttle.dropChance).toBe(0.5);
  expect(throttle.take('new', 101)).toBe(false);
  expect(throttle.deficit, 'a dropped connect takes no token').toBe(0);
  drawn = 2 ** 31;
  expect(throttle.take('new', 101)).toBe(true);
  expect(throttle.deficit).toBe(1);
});

test('with tokens set to 0 nothing is throttled', () => {
  const throttle = new ConnectThrottle(connecting, random, 0);
  for (let i = 0; i < 1000; i++) expect(throttle.take('new', 0)).toBe(true);
});
