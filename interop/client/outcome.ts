import { ZooKeeperError } from '@meerkat/client';
import { assert } from 'vitest';

/** How a promise ended, as a value. */
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: ZooKeeperError };

/** Waits for the end of a request; any error that is not one of the client's own fails the test. */
export async function outcomeOf<T>(promise: Promise<T>): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await promise };
  } catch (error) {
    if (!(error instanceof ZooKeeperError)) throw error;
    return { ok: false, error };
  }
}

/** The error that a promise rejects with; fails the test when it does not, or with something else. */
export async function errorOf(promise: Promise<unknown>): Promise<ZooKeeperError> {
  const outcome = await outcomeOf(promise);
  assert(!outcome.ok, 'the promise must reject');
  return outcome.error;
}

/** The errors of several requests that are all to fail. Each is looked at from the start: none counts as unhandled. */
export function errorsOf(promises: readonly Promise<unknown>[]): Promise<ZooKeeperError[]> {
  return Promise.all(promises.map(errorOf));
}
