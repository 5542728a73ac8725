import { AuthFailedError, type Client, ClosedError, ZooKeeperError } from '@meerkat/client';
import type { Attempt } from './attempt.ts';

/*
 * What continues behind a caller, or after what the caller wanted.
 */

/**
 * Waits for what comes after a call has had its effect, such as the removal of what is old: as long as the caller likes, and
 * what the service says of it is not the caller's trouble.
 */
export async function bestEffort(attempt: Attempt, work: Promise<unknown>): Promise<void> {
  try {
    await attempt.waitFor(work);
  } catch (error) {
    if (!(error instanceof ZooKeeperError)) throw error;
  }
}

/** The same promise. When it rejects and no caller waits for it any more, that does not end the process. */
export function ignoreRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** The client may end, and with it the session and what it had. */
export async function unlessClientEnds(done: Promise<void>): Promise<void> {
  await done.catch((error: unknown) => {
    if (!(error instanceof ClosedError || error instanceof AuthFailedError)) throw error;
  });
}

/** Resolves with what is waited for, or as soon as there is no connection to wait with. */
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
 * Resolves, with nothing, when both have settled. In a row of these, each made of the one before, nothing is kept of what is
 * over: the result of `Promise.allSettled` would hold those of all before.
 */
export async function whenBothSettled(before: Promise<unknown>, work: Promise<unknown>): Promise<void> {
  await Promise.allSettled([before, work]);
}
