import { describe, expect, test } from 'vitest';
import { AbortedError, BadVersionError, ConnectionLossError, SessionLostError, ThrottledError } from './errors.ts';
import { type RetryOptions, type RetryPolicy, retry, withRetry } from './retry.ts';
import { VirtualSurroundings } from './testing/virtual-surroundings.ts';
import type { ZooKeeperError } from './zookeeper-error.ts';

const about = { operation: 'set', path: '/a' };
const lossUnknown = () => new ConnectionLossError(about);
const lossBeforeSending = () => new ConnectionLossError({ ...about, outcome: 'not-applied' });

/** Fails with the errors one after the other, then succeeds. */
async function run(policy: RetryPolicy, errors: readonly Error[], options: RetryOptions = {}) {
  const surroundings = new VirtualSurroundings();
  let attempts = 0;
  const result = withRetry(
    policy,
    async (number) => {
      attempts = number;
      const error = errors[number - 1];
      if (error !== undefined) throw error;
      return 'done';
    },
    surroundings,
    options,
  ).catch((error: ZooKeeperError) => error);
  await surroundings.runTimers();
  return { result: await result, attempts, pausesMs: surroundings.delaysMs, nowMs: surroundings.nowMs };
}

describe('a retry', () => {
  test.each([
    { attemptsMax: Number.NaN },
    { attemptsMax: 0 },
    { pauseMinMs: -1 },
    { pauseMaxMs: Number.NaN },
    { elapsedMaxMs: Number.NaN },
  ])('is not begun by a policy that makes no sense: %o', async (odd) => {
    const { result, attempts } = await run(retry.exponential(odd), [lossBeforeSending()]);
    expect(result).toBeInstanceOf(RangeError);
    expect(attempts).toBe(0);
  });

  test('retries what was certainly not applied', async () => {
    const { result, attempts } = await run(retry.exponential(), [lossBeforeSending(), new ThrottledError(about)]);
    expect(result).toBe('done');
    expect(attempts).toBe(3);
  });

  test('does not retry what may have been applied, unless it is idempotent', async () => {
    const error = lossUnknown();
    expect(await run(retry.exponential(), [error])).toMatchObject({ result: error, attempts: 1 });
    expect(await run(retry.exponential(), [error], { idempotent: true })).toMatchObject({
      result: 'done',
      attempts: 2,
    });
  });

  test('does not retry what would only fail again', async () => {
    const error = new BadVersionError(about);
    expect(await run(retry.forever(), [error], { idempotent: true })).toMatchObject({ result: error, attempts: 1 });
  });

  test('does not retry after errors of other origin', async () => {
    const error = new TypeError('a mistake');
    expect(await run(retry.forever(), [error], { idempotent: true })).toMatchObject({ result: error, attempts: 1 });
  });

  test('ends with the session, unless the policy continues across sessions', async () => {
    const error = new SessionLostError(about);
    expect(await run(retry.forever(), [error])).toMatchObject({ result: error, attempts: 1 });
    expect(await run(retry.forever({ acrossSessions: true }), [error])).toMatchObject({ result: 'done' });
  });

  test('stops after the last attempt with its error', async () => {
    const errors = [1, 2, 3, 4].map(lossBeforeSending);
    const { result, attempts } = await run(retry.exponential({ attemptsMax: 3 }), errors);
    expect(result).toBe(errors[2]);
    expect(attempts).toBe(3);
    expect(await run(retry.never, errors)).toMatchObject({ attempts: 1 });
    expect(await run(retry.once(), errors)).toMatchObject({ attempts: 2 });
  });

  test('doubles the delay each time, up to the maximum', async () => {
    const { pausesMs } = await run(
      retry.forever({ pauseMinMs: 100, pauseMaxMs: 500 }),
      [1, 2, 3, 4, 5].map(lossBeforeSending),
    );
    // The virtual random number is the smallest: half of each delay.
    expect(pausesMs).toEqual([50, 100, 200, 250, 250]);
  });

  test('stops when the time of the policy would have passed', async () => {
    const policy = retry.forever({ pauseMinMs: 100, elapsedMaxMs: 300 });
    const { attempts, nowMs } = await run(policy, Array.from({ length: 100 }, lossBeforeSending));
    expect(attempts).toBe(3);
    expect(nowMs).toBe(150);
  });

  test('ends during a delay when its signal is aborted, and leaves no timer behind', async () => {
    const surroundings = new VirtualSurroundings();
    const controller = new AbortController();
    const result = withRetry(retry.forever(), () => Promise.reject(lossBeforeSending()), surroundings, {
      signal: controller.signal,
    });
    const expectation = expect(result).rejects.toMatchObject({
      name: 'AbortError',
      code: 'ABORTED',
      outcome: 'not-applied',
      cause: 'enough',
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(surroundings.timerCount).toBe(1);
    controller.abort('enough');
    await expectation;
    expect(surroundings.timerCount).toBe(0);
  });

  test('does not start when its signal is already aborted', async () => {
    let attempts = 0;
    const result = withRetry(retry.forever(), async () => attempts++, new VirtualSurroundings(), {
      signal: AbortSignal.abort(),
    });
    await expect(result).rejects.toBeInstanceOf(AbortedError);
    expect(attempts).toBe(0);
  });
});
