import { describe, expect, test } from 'vitest';
import { makeDeferred } from './deferred.ts';
import { BadVersionError, ConnectionLossError, SessionExpiredError, ThrottledError } from './errors.ts';
import { RetryGate } from './retry-gate.ts';
import { VirtualSurroundings } from './testing/virtual-surroundings.ts';

const about = { operation: 'get', path: '/a' };
const throttled = new ThrottledError(about);
const lost = new ConnectionLossError(about);

/** A gate whose connections are settled by the test. */
function makeGate() {
  const clock = new VirtualSurroundings();
  const connection = makeDeferred<void>();
  const gate = new RetryGate({
    clock: clock.clock,
    whenConnected: ({ signal }) => {
      signal?.addEventListener('abort', () => connection.reject(signal.reason));
      return connection.promise;
    },
  });
  return { clock, gate, connected: connection.resolve, failed: connection.reject };
}

describe('after a failure, a retry waits', () => {
  test('for half a second when the server was overloaded', async () => {
    const { clock, gate } = makeGate();
    const waiting = gate.after(throttled);
    await clock.runTimers();
    expect(await waiting).toBe(false);
    expect(clock.delaysMs).toEqual([500]);
  });

  test('for a connection when one was lost, without a timer', async () => {
    const { clock, gate, connected } = makeGate();
    const waiting = gate.after(lost);
    expect(clock.timerCount).toBe(0);
    connected();
    expect(await waiting).toBe(true);
  });

  test.each([new BadVersionError(about), new TypeError('a defect')])('not at all after %s', async (failure) => {
    await expect(makeGate().gate.after(failure)).rejects.toBe(failure);
  });

  test('until the client ends', async () => {
    const { gate, failed } = makeGate();
    const waiting = gate.after(lost);
    const end = new SessionExpiredError(about);
    failed(end);
    await expect(waiting).rejects.toBe(end);
  });
});

test.each([
  ['a pause', throttled],
  ['a wait for a connection', lost],
])('%s ends with the gate, and leaves no timer behind', async (_, failure) => {
  const { clock, gate } = makeGate();
  const waiting = gate.after(failure);
  gate.end();
  await waiting;
  expect(clock.timerCount).toBe(0);
});
