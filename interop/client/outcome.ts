import { ZooKeeperError } from '@meerkat/client';
import { assert } from 'vitest';

/** The result of a promise, as a value. */
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: ZooKeeperError };

/** Waits for a request to settle; any error that is not a ZooKeeperError fails the test. */
export async function outcomeOf<T>(promise: Promise<T>): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await promise };
  } catch (error) {
    if (!(error instanceof ZooKeeperError)) throw error;
    return { ok: false, error };
  }
}

/** The ZooKeeperError that a promise rejects with; any other result fails the test. */
export async function errorOf(promise: Promise<unknown>): Promise<ZooKeeperError> {
  const outcome = await outcomeOf(promise);
  assert(!outcome.ok, 'the promise must reject');
  return outcome.error;
}

/** The errors of several requests that must all fail. All are handled from the start, so none is unhandled. */
export function errorsOf(promises: readonly Promise<unknown>[]): Promise<ZooKeeperError[]> {
  return Promise.all(promises.map(errorOf));
}
