import { AuthFailedError, type Client, ClosedError, ZooKeeperError } from '@meerkat/client';
import type { Attempt } from './attempt.ts';

/*
 * Work that continues after a call has returned, or after it has had its effect.
 */

/**
 * Waits for work after the effect of a call, such as cleanup, until the caller's deadline. Errors of the service are
 * ignored.
 */
export async function bestEffort(attempt: Attempt, work: Promise<unknown>): Promise<void> {
  try {
    await attempt.waitFor(work);
  } catch (error) {
    if (!(error instanceof ZooKeeperError)) throw error;
  }
}

/** The same promise. Its rejection without a waiter does not end the process. */
export function ignoreRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** Ignores the end of the client, which ends the session and its znodes. */
export async function unlessClientEnds(done: Promise<void>): Promise<void> {
  await done.catch((error: unknown) => {
    if (!(error instanceof ClosedError || error instanceof AuthFailedError)) throw error;
  });
}

/** Resolves with `waited`, or as soon as there is no connection. */
export async function orDisconnected(client: Client, waited: Promise<void>): Promise<void> {
  ignoreRejection(waited);
  if (client.state !== 'connected') return;
  let leave = (): void => {};
  const disconnected = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const states = client.onState(({ state }) => {
    if (state !== 'connected') leave();
  });
  await Promise.race([waited, disconnected]);
  states[Symbol.dispose]();
}

/**
 * Resolves, without a value, when both have settled. A chain of these retains nothing of what has settled: the result
 * of `Promise.allSettled` would hold all earlier results.
 */
export async function whenBothSettled(before: Promise<unknown>, work: Promise<unknown>): Promise<void> {
  await Promise.allSettled([before, work]);
}
